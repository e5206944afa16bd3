"""The trigger form. Airflow's forms know no translations: each text is short and stands in both languages."""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow.steps import LAYER_TITLES
from dataflow_ops.pipeline.flow import LAYERS

SELDOM = "For this run only · 仅限本次运行"
"""A section is folded until somebody opens it: only what few people need stands in one. Fields without a
section come first, and open."""


def form() -> dict[str, Any]:
    """Parameters of a corpus's DAG, in the order of the form."""
    return {
        "until": Param(
            None,
            type=["null", "string"],
            enum=[None, *LAYERS],
            values_display={"None": "all layers · 全部层", **LAYER_TITLES},
            title="Stop after layer · 运行到此层为止",
            description="All layers: up to a published version. 全部层：一直运行到发布版本。",
        ),
        "priority": Param(
            "normal",
            type="string",
            enum=["normal", "urgent"],
            values_display={"normal": "normal · 普通", "urgent": "urgent · 加急"},
            title="Priority · 优先级",
            description="Urgent goes ahead of every other run. 加急任务排在所有任务之前。",
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run · 试运行",
            description=(
                "Only lists the sources, makes nothing. The answer stands on the run's DataFlow tab, and by"
                " source in the log of 'start'."
                " 只列出来源，不产生数据；结果见运行页的 DataFlow 标签，明细见 start 的日志。"
            ),
        ),
        "overrides": Param(
            [],
            # The form makes null of a field that was emptied, and refuses it where null is no type.
            type=["null", "array"],
            # An empty line is no mistake: the form makes one of a newline at the end.
            items={"type": "string", "pattern": r"^\s*([A-Za-z_][\w.-]*\s*=.*)?$"},
            title="Overrides · 临时改动的设置",
            description=(
                "One section.key=value a line, e.g. dedup.minhash.shingle_size=9. Such a version waits unless"
                " Promote is on. All keys: the DataFlow tab of any run, Parameters, “All settings”."
                " 每行一个 section.key=value；不勾选“设为当前版本”时，新版本等待批准。"
                "全部键名：任一运行的 DataFlow 标签，“参数”中的“全部设置”。"
            ),
            section=SELDOM,
        ),
        "promote": Param(
            False,
            type="boolean",
            title="Promote · 设为当前版本",
            description=(
                "Only matters with overrides: lets their version become current. Without overrides it does"
                " anyway. 仅在有临时改动时起作用。"
            ),
            section=SELDOM,
        ),
    }
