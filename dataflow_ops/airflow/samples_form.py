"""The trigger form of the samples DAG. Read at every parse, so it lists template files and opens none."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from airflow.sdk import Param  # noqa: TID253 - this package is where Airflow belongs

from dataflow_ops.airflow.params import SELDOM

FORMATS: Final = ("messages", "sharegpt", "instruction")
EXPORTS: Final = ("messages", "instruction")
_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
_PAIR: Final = r"^\s*([A-Za-z_][\w.-]*\s*=.*)?$"


def template_names(folder: Path) -> list[str]:
    """Names of the templates (``*.yaml``) in a folder, without the ending; none where it is not there."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def samples_form(templates: Path) -> dict[str, Any]:
    """Parameters in the order of the form.

    Args:
        templates: folder of templates.
    """
    names = template_names(templates)
    return {
        "dataset": Param(
            type="string",
            pattern=_NAME,
            title="Data set · 数据集",
            description=(
                "Letters, digits, '_', '-', '.'. A new name begins a new data set."
                " 字母、数字及 _ - . ；新名称即新建数据集。"
            ),
        ),
        "files": Param(
            [],
            # The form makes null of a field that was emptied, and refuses it where null is no type.
            type=["null", "array"],
            items={"type": "string"},
            title="Files to import · 导入文件",
            description=(
                "One name or pattern a line, below the folder of sample files (docs/samples-in-airflow.md);"
                " 'upload:ID' for an upload. Empty: nothing is imported."
                " 每行一个文件名或通配符，相对于样本文件夹；上传的文件写 upload:ID。留空则不导入。"
            ),
        ),
        "format": Param(
            None,
            type=["null", "string"],
            enum=[None, *FORMATS],
            values_display={"None": "told by the records · 自动识别"},
            title="Format · 格式",
            description="Of the files to import. 导入文件的格式。",
        ),
        "clean": Param(
            True,
            type="boolean",
            title="Clean · 清洗",
            description=(
                "Normalises, filters and deduplicates all dialogues of the data set."
                " 对数据集中全部对话做规范化、过滤和去重。"
            ),
        ),
        "template": Param(
            None,
            type=["null", "string"],
            enum=[None, *names],
            values_display={"None": "no augmentation · 不增强"},
            title="Augment with template · 增强模板",
            description=(
                "What a model is asked about the dialogues; files of the folder of templates."
                " 向模型提问所用的模板，取自模板文件夹。"
            ),
        ),
        "export": Param(
            "messages",
            type=["null", "string"],
            enum=[*EXPORTS, None],
            values_display={
                "messages": "messages",
                "instruction": "instruction triples · 指令三元组",
                "None": "no export · 不导出",
            },
            title="Export as · 导出格式",
            description="JSON Lines in shards, with a manifest. 分片 JSONL，附清单。",
        ),
        "budget_tokens": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            title="Budget in tokens · 词元预算",
            description=(
                "For the augmentation, instead of the template's. Reached: it pauses."
                " 增强所用，优先于模板中的设置；用完即暂停。"
            ),
            section=SELDOM,
        ),
        "budget_cost": Param(
            None,
            type=["null", "number"],
            exclusiveMinimum=0,
            title="Budget in money · 费用预算",
            description=(
                "In the currency of the template's prices. Reached: it pauses. 按模板价格的币种；用完即暂停。"
            ),
            section=SELDOM,
        ),
        "clean_settings": Param(
            [],
            type=["null", "array"],
            items={"type": "string", "pattern": _PAIR},
            title="Settings of the clean-up · 清洗设置",
            description=(
                "One section.key=value a line, e.g. dialogue.answer=true or dedup.verify.min_similarity=0.95."
                " 每行一个 section.key=value。"
            ),
            section=SELDOM,
        ),
        "export_settings": Param(
            [],
            type=["null", "array"],
            items={"type": "string", "pattern": _PAIR},
            title="Settings of the export · 导出设置",
            description=(
                "One key=value a line, e.g. compression=zst or shard_records=10000. What was asked in"
                " this run goes along. 每行一个 key=value；同次运行的增强结果会一并导出。"
            ),
            section=SELDOM,
        ),
    }
