"""A version that waits for a person: asked in Airflow's form, decided there, on our page or by command."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from airflow.providers.standard.operators.hitl import ApprovalOperator  # noqa: TID253 - where Airflow belongs
from airflow.providers.standard.triggers.hitl import HITLTrigger  # noqa: TID253
from airflow.sdk import Param  # noqa: TID253
from airflow.sdk.exceptions import AirflowRuntimeError, AirflowSkipException, TaskDeferred  # noqa: TID253
from airflow.triggers.base import TriggerEvent  # noqa: TID253

from dataflow_ops.airflow.assets import tell, tell_nothing
from dataflow_ops.airflow.object_store import use_connection
from dataflow_ops.airflow.operators import our_run_id
from dataflow_ops.airflow.triggers import Look
from dataflow_ops.airflow.waits import embedded, patient_state, still_waits

LOOK_EVERY_S = 5.0
DECIDED = "decided elsewhere"
"""Event of a version about which somebody decided by command or on the product page."""


def answer_form() -> dict[str, Any]:
    """Parameters of the task, shown in its form beside the two answers."""
    about = "Kept with the decision. 与决定一并保存。"
    return {"note": Param("", type="string", title="Note · 备注", description=about)}


class DecisionTrigger(HITLTrigger):
    """Fires when somebody answers Airflow's form, or when the version waits no longer.

    The API server wakes the task itself when the form is answered. This looks there too, for an answer that
    came before the task was parked.

    Args:
        home: DataFlow's home folder.
        dataset: data set.
        version: the version that waits.
        arguments: of Airflow's own trigger.
    """

    def __init__(self, *, home: str, dataset: str, version: str, **arguments: Any) -> None:
        super().__init__(**{"poke_interval": LOOK_EVERY_S, **arguments})
        self.home = home
        self.dataset = dataset
        self.version = version

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """How the triggerer makes it again, in another process or after a restart."""
        _, arguments = super().serialize()
        ours = {"home": self.home, "dataset": self.dataset, "version": self.version}
        return "dataflow_ops.airflow.approval.DecisionTrigger", arguments | ours

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Look at both until one has an answer."""
        import asyncio

        look = Look(
            lambda: still_waits(self.home, self.dataset, self.version), self.poke_interval, self.log.warning
        )
        while True:
            if (answered := await self._answered()) is not None:
                yield answered
                return
            if await look() is False:
                yield TriggerEvent({DECIDED: True})  # type: ignore[no-untyped-call]
                return
            await asyncio.sleep(look.pause)

    async def _answered(self) -> TriggerEvent | None:
        try:
            found: TriggerEvent | None = await self._handle_response()  # type: ignore[no-untyped-call]
        except AirflowRuntimeError as e:  # the API server is away for a moment
            self.log.warning("Airflow's form can't be read, asked again: %s", e)
            return None
        return found


class Approval(ApprovalOperator):
    """Asks a person about a version that waits; skipped where none does.

    Args:
        home: DataFlow's home folder.
        dataset: data set that the DAG makes.
    """

    template_fields: Sequence[str] = ()

    def __init__(self, *, home: str, dataset: str, **kwargs: Any) -> None:
        super().__init__(subject=f"A version of {dataset} waits for you · 有新版本等待批准", **kwargs)
        self.home = home
        self.dataset = dataset

    def execute(self, context: Any) -> None:
        """Ask, and wait without a slot."""
        from airflow.sdk.execution_time.hitl import upsert_hitl_detail

        published = context["ti"].xcom_pull(task_ids="publish")
        if published["state"] != "AWAITING_APPROVAL":
            raise AirflowSkipException("No version waits for a person")
        version = published["version"]
        if embedded():
            raise AirflowSkipException(
                f"{version} waits for a person, and nobody is here: dataflow versions approve {version}"
            )
        ti = context["ti"]
        use_connection()
        moved = drift_of(self.home, version)
        self.body = question(published, moved, context["dag"].dag_id, context["run_id"])
        upsert_hitl_detail(
            ti_id=ti.id,
            options=self.options,
            subject=self.subject,
            body=self.body,
            params=self.serialized_params,
        )
        raise TaskDeferred(
            trigger=DecisionTrigger(
                home=self.home,
                dataset=self.dataset,
                version=version,
                ti_id=ti.id,
                options=self.options,
                params=self.serialized_params,
                timeout_datetime=None,
            ),
            method_name="execute_complete",
        )

    def execute_complete(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        """Do what was decided, unless somebody was faster elsewhere; return how it ended.

        Raises:
            VersionError: the version is damaged or gone.
        """
        use_connection()
        published = context["ti"].xcom_pull(task_ids="publish")
        version = published["version"]
        if not still_waits(self.home, self.dataset, version):
            self.log.info("Somebody has decided about %s already", version)
        elif not event.get(DECIDED):
            self._decide(version, event)
        approved, current = self._standing(version)
        self._end_run(our_run_id(context), version, approved)
        if approved:
            tell(self, context, {**published, "current": current})
        else:
            tell_nothing(self)
        return {"version": version, "approved": approved}

    def _decide(self, version: str, event: Mapping[str, Any]) -> None:
        from dataflow_ops.pipeline.versions import open_versions

        user = event.get("responded_by_user") or {}
        who = str(user.get("name") or user.get("id") or "")
        note = str((event.get("params_input") or {}).get("note") or "")
        approve = list(event["chosen_options"]) == [self.APPROVE]
        with open_versions(Path(self.home)) as versions:
            act = versions.approve if approve else versions.reject
            act(version, self.dataset, who=who, note=note)
        self.log.info("%s %s by %s: %s", version, "approved" if approve else "rejected", who, note)

    def _standing(self, version: str) -> tuple[bool, bool]:
        """Whether it was let through, and whether it is current."""
        from dataflow_ops.pipeline.versions import open_versions

        with open_versions(Path(self.home)) as versions:
            found = versions.show(version, self.dataset)
        return found["state"] == "PUBLISHED", bool(found["current"])

    def _end_run(self, run_id: str, version: str, approved: bool) -> None:
        """Let this run end too: a version that several runs came to is known under the first of them."""
        with patient_state(self.home) as state:
            run = state.get_run(run_id)
            if run is None or run.state != "AWAITING_APPROVAL":
                return
            dead = state.count_dead_letters("error", run_id=run_id)
            event = ("approve_with_dead" if dead else "approve") if approved else "reject"
            state.set_run_state(run_id, event, "" if approved else f"{version} was rejected")


def drift_of(home: str, version: str) -> list[dict[str, Any]]:
    """What moved against the last full version, as its report says; none where it has no report, or a damaged
    one, which the task's log tells.
    """
    from dataflow_ops.pipeline.home import open_home
    from dataflow_ops.pipeline.report_file import log, read_report
    from dataflow_ops.storage.opening import open_store

    report, wrong = read_report(open_store(open_home(Path(home), create=False).root), version)
    if wrong:
        log.warning("%s: what moved is not known", wrong)
    found: list[dict[str, Any]] = (report or {}).get("drift") or []
    return found


def question(
    published: Mapping[str, Any], drift: Sequence[Mapping[str, Any]], dag_id: str, run_id: str
) -> str:
    """The text of the form, Markdown: why the version waits, what moved, where to look."""
    from airflow.sdk.configuration import conf

    base = str(conf.get("api", "base_url", fallback="") or "").rstrip("/")
    version, dataset = published["version"], published["dataset"]
    report = f"{base}/dataflow/api/versions/report?" + urlencode({"dataset": dataset, "version": version})
    run = f"{base}/dags/{quote(dag_id)}/runs/{quote(run_id, safe=':+')}"
    lines = [
        f"**{version}**: {published['documents']:,} documents, {published['tokens']:,} tokens.",
        "",
        "It is not current until somebody approves it. 批准之前不会成为当前版本。",
        "",
        *(f"- {reason}" for reason in published["waits"]),
        "",
    ]
    if drift:
        lines += ["| what | name | measure | before | now | |", "|---|---|---|---:|---:|---|"]
        lines += [
            f"| {d['what']} | {_cell(d['name'])} | {d['measure']} | {d['old']:.1%} | {d['new']:.1%} |"
            f" {'beyond its bound' if d['beyond'] else ''} |"
            for d in sorted(drift, key=lambda d: (not d["beyond"], -abs(d["new"] - d["old"])))[:20]
        ]
        lines.append("")
    lines += [
        f"[Report · 报告]({report}) · [Run · 运行]({run})",
        "",
        f"In a terminal: `dataflow versions approve {version}` or `dataflow versions reject {version}`",
    ]
    return "\n".join(lines)


def _cell(text: Any) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")
