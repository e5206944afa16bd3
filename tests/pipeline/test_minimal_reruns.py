"""What runs again after a change: the tasks whose input or settings changed, by step, and nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from dataflow_ops.cli.console import ConsoleReporter
from dataflow_ops.engine.inputs import OutputIndex
from dataflow_ops.job_file import load_job
from dataflow_ops.pipeline.flow import ONLY_ABOVE, STEP_NAMES, partitioning
from dataflow_ops.pipeline.run import run_job
from dataflow_ops.pipeline.session import latest_run
from dataflow_ops.state.store import StateStore
from dataflow_ops.storage.chunk_store import ChunkStore
from dataflow_ops.storage.local import LocalStore
from tests.pipeline import prose

BOUND = "clean.quality_rules.max_avg_sentence_len"
CHUNK_STEPS = [name for name in STEP_NAMES if partitioning(name) == "chunk"]


@dataclass
class Site:
    """Sources, a job over them and a home, in one folder that can be copied."""

    folder: Path
    sources: dict[str, str] = field(default_factory=lambda: {"notes": "notes", "guides": "guides"})
    """Source (and its folder) -> domain."""
    last: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    version: str = ""

    def run(self, *overrides: str) -> dict[str, int]:
        """Run to the version; step -> tasks run now, for the steps that ran any."""
        job = self.folder / "job.yaml"
        listed = [
            {"source_id": name, "kind": "files", "path": str(self.folder / name), "domain": domain}
            for name, domain in self.sources.items()
        ]
        sections = {
            "dataset": {"id": "notes"},
            "sources": listed,
            "ingest": {"chunk_mb": 0.2},
            "clean": {"quality_rules": {"max_avg_sentence_len": 450}},
            "output": {"partition_by": ["domain"], "version": "t", "shards": 8},
        }
        job.write_text(yaml.safe_dump(sections), encoding="utf-8")
        reporter = ConsoleReporter(quiet=True)
        made = run_job(
            load_job(job, overrides),
            self.folder / "home",
            workers=0,
            reporter=reporter,
            data_date="2026-01-01",
        )
        self.version = made.version_id
        self.last = {name: (r.tasks, r.ran, r.skipped) for name, r in reporter.reports.items()}
        assert all(tasks == ran + skipped for tasks, ran, skipped in self.last.values())
        assert list(self.last) == list(STEP_NAMES)
        ran = {name: r.ran for name, r in reporter.reports.items() if r.ran}
        print(" ".join(f"{name} {n}/{self.last[name][0]}" for name, n in ran.items()) or "nothing ran")
        return ran

    def chunks(self) -> dict[str, set[str]]:
        """Chunk of the newest run -> its files."""
        url = f"sqlite:///{self.folder / 'home' / 'state.db'}"
        with StateStore(url) as state:
            index = OutputIndex(state, latest_run(state))
            store = ChunkStore(LocalStore(self.folder / "home"))
            return {
                chunk: {f"{r['source_id']}/{r['path']}" for r in store.read(output).to_pylist()}
                for chunk, output in index.outputs("fetch", "files")
            }

    def chunk_of(self, path: str) -> str:
        """Chunk that holds a file."""
        [found] = [chunk for chunk, files in self.chunks().items() if path in files]
        return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """500 notes and 60 guides, and three texts of sentences two, three and four times as long; run once."""
    folder = tmp_path_factory.mktemp("reruns") / "site"
    prose.build(folder / "notes", 500)
    prose.build(folder / "guides", 60, "guide", 5_000)
    pool = prose.sentences()
    for times in (2, 3, 4):
        text = prose.note(7_000 + times, pool, 24).replace(".\n", ",\n").replace(":\n", ",\n").split("\n")
        joined = [" ".join(text[i : i + times]).rstrip(",") + "." for i in range(0, 24, times)]
        (folder / "notes" / f"by-{times}.txt").write_text("\n".join(joined), encoding="utf-8")
    site = Site(folder)
    first = site.run()
    assert first == {name: tasks for name, (tasks, _, _) in site.last.items() if name not in ONLY_ABOVE}
    assert 20 <= len(site.chunks()) <= 40
    return folder


@pytest.fixture
def site(made: Path, tmp_path: Path) -> Site:
    """A copy of the finished site, times and all."""
    shutil.copytree(made, tmp_path / "site")
    return Site(tmp_path / "site")


def of_chunks(ran: Mapping[str, int]) -> dict[str, int]:
    return {name: n for name, n in ran.items() if name in CHUNK_STEPS}


def test_the_same_again_runs_nothing(site: Site) -> None:
    assert site.run() == {}


def test_a_bound_that_changes_one_verdict_goes_on_with_its_chunk(site: Site) -> None:
    chunks = len(site.chunks())
    judged_anew, told_anew = site.chunk_of("notes/by-3.txt"), site.chunk_of("notes/by-4.txt")
    ran = site.run(f"{BOUND}=300")
    assert ran.pop("match") <= 4  # the sixteen bands of one document lie in up to four prefixes
    assert ran == {
        "filter": chunks,
        "sign": 1,
        "exact": 1,
        "gather": 1,
        "score": 1,
        "label": 1,
        "plan": 1,
        # The document refused before is told with the new bound in its fate.
        "scatter": len({judged_anew, told_anew}),
        "export": 1,
    }


def test_a_bound_that_changes_no_verdict_reaches_reject_rows_only(site: Site) -> None:
    assert site.run(f"{BOUND}=440") == {"filter": len(site.chunks()), "scatter": 1}


def test_a_bound_of_a_rule_that_refuses_nobody_ends_at_filter(site: Site) -> None:
    ran = site.run(
        "clean.quality_rules.rules.entropy.low=2.1", "clean.quality_rules.max_repetition_ratio=0.8"
    )
    assert ran == {"filter": len(site.chunks())}


def test_a_changed_dedup_setting_runs_from_the_step_that_reads_it(site: Site) -> None:
    chunks = len(site.chunks())
    ran = site.run("dedup.minhash.band=8")
    assert (ran["sign"], ran["match"]) == (chunks, 4)
    assert not set(ran) & {"discover", "fetch", "parse", "filter"}
    # Other candidates, the same duplicates: what follows has nothing to do.
    assert not set(ran) & {"exact", "score", "label", "plan", "scatter", "export"}
    ran = site.run("dedup.minhash.band=8", "dedup.verify.min_similarity=0.81")
    assert set(ran) == {"verify", "confirm"}


def test_a_changed_ratio_plans_and_exports(site: Site) -> None:
    def ratio(notes: float) -> list[str]:
        return [
            "mixing.target_tokens=60000",
            f"mixing.sampling.notes={notes}",
            f"mixing.sampling.guides={1 - notes:.1f}",
        ]

    assert set(site.run(*ratio(0.9))) == {"plan", "scatter", "export"}
    assert set(site.run(*ratio(0.8))) == {"plan", "scatter", "export"}
    assert site.run(*ratio(0.8)) == {}
    # A document more moves the end of its domain's draw: past one document of another chunk at most.
    (site.folder / "notes" / "one-more.txt").write_text(prose.note(9_999, prose.sentences()), "utf-8")
    ran = site.run(*ratio(0.8))
    assert ran["label"] == 1
    assert ran["scatter"] <= 3


def test_a_changed_label_runs_nothing_and_names_the_next_version(site: Site) -> None:
    site.run()
    before = site.version
    # The same bytes and settings are the version that is there, whatever it is called.
    assert site.run("output.version=u") == {}
    assert site.version == before
    site.run("output.version=u", f"{BOUND}=440")
    assert site.version.startswith("u-")
    assert (site.folder / "home" / "versions" / site.version / "manifest.json").exists()


def test_a_touched_file_is_fetched_again_and_that_is_all(site: Site) -> None:
    os.utime(site.folder / "notes" / "note-0200.txt", (1_000_000_000, 1_000_000_000))
    assert site.run() == {"discover": 1, "fetch": 1}


def test_one_file_added_runs_its_own_chunk(site: Site) -> None:
    before = site.chunks()
    (site.folder / "notes" / "new.txt").write_text(prose.note(9_999, prose.sentences()), "utf-8")
    ran = site.run()
    own = [c for c, files in site.chunks().items() if files != before.get(c)]
    assert len(own) == 1
    # Rows behind the new one move: its chunk's part of every key and band range is new, at their old places.
    assert ran.pop("exact") == ran.pop("match") == 4
    assert ran.pop("verify", 0) <= 4
    assert max(ran.pop("collect", 0), ran.pop("confirm", 0)) <= 4
    ran.pop("unite", 0)
    assert ran == {**dict.fromkeys(CHUNK_STEPS, 1), "discover": 1, "plan": 1, "export": 1}


def test_one_file_changed_runs_its_own_chunk(site: Site) -> None:
    own = site.chunk_of("notes/note-0003.txt")
    (site.folder / "notes" / "note-0003.txt").write_text(prose.note(9_998, prose.sentences()), "utf-8")
    ran = site.run()
    assert own == site.chunk_of("notes/note-0003.txt")
    # One key went, one came; its bands lie in up to four ranges. No row moved: no group is looked at again.
    assert ran.pop("exact") <= 2
    assert ran.pop("match") <= 4
    assert ran.pop("score", 0) == 0  # the same rows of the chunk survive
    expected = dict.fromkeys((s for s in CHUNK_STEPS if s != "score"), 1)
    assert ran == {**expected, "discover": 1, "plan": 1, "export": 1}


def test_one_file_removed_runs_its_own_chunk(site: Site) -> None:
    before = site.chunks()
    (site.folder / "notes" / "note-0101.txt").unlink()
    ran = site.run()
    assert [c for c, files in before.items() if files != site.chunks().get(c)] == [
        c for c, files in before.items() if "notes/note-0101.txt" in files
    ]
    assert ran.pop("exact") == ran.pop("match") == 4
    for reduce in ("verify", "unite", "collect", "confirm"):
        assert ran.pop(reduce, 0) <= 4
    assert ran == {**dict.fromkeys(CHUNK_STEPS, 1), "discover": 1, "plan": 1, "export": 1}


def test_a_file_that_ends_a_group_reaches_the_chunk_of_the_other(site: Site) -> None:
    """note-0048 and note-0049 are alike: without the one, the other stands for itself alone."""
    texts = [(site.folder / "notes" / f"note-{n:04d}.txt").read_text("utf-8") for n in (48, 49)]
    assert texts[0] != texts[1]
    both = {site.chunk_of("notes/note-0048.txt"), site.chunk_of("notes/note-0049.txt")}
    (site.folder / "notes" / "note-0048.txt").unlink()
    ran = site.run()
    assert (ran["parse"], ran["sign"]) == (1, 1)
    assert ran["label"] == ran["scatter"] == len(both)


def test_a_new_source_leaves_the_chunks_of_the_others_alone(site: Site) -> None:
    before = site.chunks()
    prose.build(site.folder / "letters", 60, "letter", 6_000)
    site.sources["letters"] = "notes"
    ran = site.run()
    after = site.chunks()
    assert before.items() <= after.items()
    new = len(after) - len(before)
    assert of_chunks(ran) == dict.fromkeys(CHUNK_STEPS, new)


def test_a_changed_domain_of_a_source_labels_its_chunks_only(site: Site) -> None:
    guides = sum(1 for files in site.chunks().values() if any(f.startswith("guides/") for f in files))
    site.sources["guides"] = "notes"
    ran = site.run()
    assert (ran.pop("label"), ran.pop("plan")) == (guides, 1)
    assert set(ran) == {"scatter", "export"}  # the folders of the version are other ones
