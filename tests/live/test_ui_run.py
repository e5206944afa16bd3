"""A run on the live stack through the page alone: triggered, watched, paused, resumed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from tests.live.page import Page, logged_in
from tests.pipeline import corpus
from tests.pipeline.slow_pdf import slow_pdf
from tests.stack.live import LiveStack, live_stack, missing

pytestmark = [
    pytest.mark.stack,
    pytest.mark.browser,
    pytest.mark.timeout(1800),
    pytest.mark.xdist_group("stack"),
]

DAG = "tiny__full"
OVERRIDE = "mixing.seed=7"
NOTE = "Tried through the page"
WHY = "the disk is being swapped"
PDFS = 30
PAGES = 100
"""About a second of work each: whenever the run is paused while it parses, some are in the midst of one."""
HELD = re.compile(r"(\d+) of (\d+) tasks? paused")
PARSING = re.compile(r"Parse [1-9]\d?\s?%")
RUN_S = 600.0
"""Patience, not expectation: beside other work a machine may be many times slower."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveStack]:
    why = missing() or "; ".join(
        f"{name} is not installed" for name in ("chromium", "chromedriver") if shutil.which(name) is None
    )
    if why:
        if os.environ.get("DATAFLOW_REQUIRE_STACK") == "1":
            pytest.fail(why)
        pytest.skip(why)
    base = tmp_path_factory.mktemp("ui-run")
    (base / "jobs").mkdir()
    _job(base)
    with live_stack(base / "home", jobs=base / "jobs", workers=2, airflow={"dag_refresh_s": 5}) as live:
        yield live


def _job(base: Path) -> Path:
    """Text of several kinds, and PDFs that take their time; one chunk for each PDF, so several bundles."""
    written = yaml.safe_load(corpus.build(base / "in", code=12, docs=24).read_text(encoding="utf-8"))
    papers = base / "in" / "papers"
    papers.mkdir()
    for i in range(PDFS):
        (papers / f"paper-{i:02d}.pdf").write_bytes(slow_pdf(PAGES, f"Paper {i} says the same on every page"))
    written["sources"].append(
        {"source_id": "papers", "kind": "files", "path": str(papers), "domain": "papers"}
    )
    job = base / "jobs" / "tiny.yaml"
    more = {
        "ingest": {"chunk_mb": 0.4},
        # However slow the machine: a paper must come through in both homes.
        "parse": {"cpu_seconds": 120},
        "schedule": {"full": None, "incremental": None},
    }
    job.write_text(yaml.safe_dump(written | more), encoding="utf-8")
    return job


@dataclass
class AirflowRun:
    """What Airflow's own API says about the run."""

    stack: LiveStack
    run_id: str

    def get(self, path: str = "", **params: Any) -> Any:
        with self.stack.client() as client:
            answer = client.get(f"/api/v2/dags/{DAG}/dagRuns/{self.run_id}{path}", params=params)
            return answer.raise_for_status().json()

    def tasks(self) -> list[dict[str, Any]]:
        return list(self.get("/taskInstances", limit=500)["task_instances"])

    def states(self, task_id: str) -> list[str]:
        return [str(t["state"]) for t in self.tasks() if t["task_id"] == task_id]

    def busy_slots(self) -> int:
        pools = self.stack.get("/api/v2/pools")["pools"]
        return sum(int(pool["running_slots"]) + int(pool["queued_slots"]) for pool in pools)


def test_a_run_is_triggered_watched_paused_and_resumed_on_the_page(stack: LiveStack, tmp_path: Path) -> None:
    with stack.client() as client:
        stack.wait("the DAG", lambda: client.get(f"/api/v2/dags/{DAG}").status_code == 200)
    with logged_in(stack.url, stack.user, stack.password, tmp_path / "browser", size=(1500, 1400)) as page:
        try:
            run = AirflowRun(stack, _trigger(page, stack))
            _watch(page)
            _pause(page, run)
            _resume(page, run)
        except AssertionError as e:
            raise AssertionError(f"{e}\nAt the end: {page.keep('at the end')}") from e
    assert run.get()["state"] == "success"
    assert run.get()["note"] == NOTE
    assert {t["try_number"] for t in run.tasks() if t["state"] == "success"} == {1}, "a pause used an attempt"
    ours = _published(stack.home)
    assert len([name for name in ours if name.endswith(".parquet") and "part-" in name]) >= 6
    assert ours == _published(_by_command(stack, tmp_path / "other")), "not the bytes of `dataflow run`"


def _trigger(page: Page, stack: LiveStack) -> str:
    """Fill the form: an override, that its version may become current, a note; the run's id."""
    form = "[role=dialog]"
    page.open(f"/dags/{DAG}")
    page.click("[data-testid=trigger-dag-button]")
    page.click("button", "For this run only", form)
    page.type("textarea[name=element_overrides]", OVERRIDE, within=form)
    page.click("label:has(input[name=element_promote])", within=form)
    page.click("button", "Advanced Options", form)
    page.click("*", "Add a note", form)
    page.type("textarea:not(.ime-text-area)", NOTE + Keys.TAB, within=form)
    page.waits_for_text(NOTE)  # written down: the field has become text
    page.click("[data-testid=trigger-dag-submit]", within=form)

    def begun() -> str:
        runs = stack.get(f"/api/v2/dags/{DAG}/dagRuns")["dag_runs"]
        return str(runs[0]["dag_run_id"]) if runs else ""

    run_id = page.wait("a run in Airflow", begun)
    page.wait("the page of the run", lambda: run_id.partition("__")[0] in page.driver.current_url)
    page.click("a", "DataFlow run")
    return run_id


def _watch(page: Page) -> None:
    """The bar moves, and the sentence says what is done."""
    page.wait("the run's first words", lambda: "Running" in page.text(), RUN_S)
    page.wait("some of the parsing", lambda: PARSING.search(page.text()), RUN_S)
    seen = page.progress()
    page.wait(f"a bar beyond {seen} %", lambda: page.progress() > seen >= 0, RUN_S)


def _pause(page: Page, run: AirflowRun) -> None:
    """Every task stops, gives its slot back, and the page says who, why, and that all have."""
    page.click("button", "Pause")
    page.type("input", WHY, within='[aria-label="Pause what?"]')
    page.click("button", "Pause now")
    page.waits_for_text("Paused", f"Why: {WHY}", f"by {run.stack.user}")

    def all_of_them() -> bool:
        held = HELD.search(page.text())
        return held is not None and held[1] == held[2]

    page.wait("n of n tasks paused", all_of_them)
    parsing = "parse.parse"
    page.wait("bundles without a slot", lambda: set(run.states(parsing)) == {"deferred"})
    assert len(run.states(parsing)) >= 3
    assert run.busy_slots() == 0
    assert {t["try_number"] for t in run.tasks() if t["task_id"] == parsing} == {1}
    assert set(run.states("filter.filter")) == {"None"}, "a step began while the one before it was paused"
    page.find("button", "Resume")


def _resume(page: Page, run: AirflowRun) -> None:
    """A page that was opened while nothing moved follows the run to a version that is current."""
    page.driver.refresh()
    page.click("button", "Resume")
    page.find("button", "Pause")
    text = page.waits_for_text("Done", "is current", timeout_s=RUN_S)
    assert WHY not in text
    page.find("option", "near", '[aria-label="Just removed"]')
    page.wait("the end of Airflow's run", lambda: run.get()["state"] in ("success", "failed"))
    _look_again(page)


def _look_again(page: Page) -> None:
    """A page that is opened stays at its top; the keys work where the pointer is, without a click."""
    page.driver.refresh()
    entries = '[aria-label="Just removed"] [role=option]'
    entry = page.find(entries)
    time.sleep(2)  # whatever moves a page that is filled has done so
    moved = page.driver.execute_script(
        "return [...document.querySelectorAll('*')].filter(e => e.scrollTop > 0 && e.clientHeight > 300)"
    )
    assert not moved, f"the page has moved: {page.keep('moved')}"
    ActionChains(page.driver).move_to_element(entry).perform()
    first = page.find(f"{entries}[aria-selected=true]").text
    ActionChains(page.driver).send_keys(Keys.ARROW_RIGHT).perform()
    page.wait("the next document", lambda: page.find(f"{entries}[aria-selected=true]").text != first)


def _by_command(stack: LiveStack, home: Path) -> Path:
    """The same job by ``dataflow run`` in a home of its own; that home."""
    job = stack.home.parent / "jobs" / "tiny.yaml"
    command = [sys.executable, "-m", "dataflow_ops.cli.main", "run", str(job), "--home", str(home)]
    done = subprocess.run(
        [*command, "--workers", "2", "--set", OVERRIDE, "--promote"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 4), done.stderr
    return home


def _published(home: Path) -> dict[str, str]:
    """Path below the one version → SHA-256 of all it is made of; its id holds a date, its report times."""
    (version,) = [path for path in (home / "versions").iterdir() if path.is_dir()]
    return {
        str(path.relative_to(version)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(version.rglob("*"))
        if path.is_file() and not path.name.startswith("report.")
    }
