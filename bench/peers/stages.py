"""What is compared: a literal table of stages, with who runs in each and on which documents."""

from __future__ import annotations

from typing import NamedTuple

OURS = "dataflow"
_ALL_PASS = {"clean": {"quality_rules": {"enabled": False}}}
"""Dedup gets every document, as with the peers: nothing is refused before it."""
_MORE_BANDS = {"dedup": {"minhash": {"band": 25, "rows_per_band": 5}}}
"""The cheapest bands that find as much as the best peer on every label; see ``dataflow tune-dedup``."""


class Entry(NamedTuple):
    """One line of a stage.

    Attributes:
        peer: who.
        work: the name by which its runner knows the work.
        title: how people read it.
        part: what it does of the stage's work where that is not all; the bar is not about such lines.
    """

    peer: str
    work: str
    title: str
    part: str = ""


class Ours(NamedTuple):
    """A run of the product. Without ``layer`` the runner ``run_normalise.py`` is used.

    Attributes:
        before: the layer before, which is not counted.
        layer: the layer that is.
        settings: of the job.
        work: tells the runs of one stage apart; empty for the first, which peers are held against.
        title: how people read it.
    """

    before: str = ""
    layer: str = ""
    settings: dict[str, object] = {}  # noqa: RUF012
    work: str = ""
    title: str = OURS


class Stage(NamedTuple):
    """Work that several tools do, on the documents of one folder of the slice."""

    name: str
    title: str
    documents: str
    ours: tuple[Ours, ...]
    peers: tuple[Entry, ...]
    dedup: bool


STAGES = (
    Stage(
        "minhash",
        "MinHash dedup (peers: 16 bands of 8 rows)",
        "all",
        (
            Ours("filter", "dedup", _ALL_PASS, title="dataflow (16 × 8)"),
            Ours("filter", "dedup", _ALL_PASS | _MORE_BANDS, "25x5", "dataflow (25 × 5)"),
        ),
        (
            Entry("datatrove", "minhash", "datatrove (5 words)"),
            Entry("data-juicer", "minhash-words", "data-juicer (5 words)"),
            Entry("data-juicer", "minhash-characters", "data-juicer (5 characters)"),
            Entry("text-dedup", "minhash", "text-dedup (5 words)"),
            Entry("rensa", "minhash", "rensa (5 words)", "a library"),
            Entry("rensa", "words", "rensa (single words)", "a library"),
            Entry("datasketch", "minhash", "datasketch (5 words)", "a library"),
        ),
        True,
    ),
    Stage(
        "exact",
        "Exact dedup",
        "all",
        (Ours("filter", "dedup", _ALL_PASS | {"dedup": {"near": False}}),),
        (
            Entry("datatrove", "exact", "datatrove"),
            Entry("data-juicer", "exact", "data-juicer"),
            Entry("text-dedup", "exact", "text-dedup"),
        ),
        True,
    ),
    Stage(
        "repetition",
        "Repetition filters",
        "english",
        (Ours("parse", "filter", {"clean": {"quality_rules": {"presets": ["gopher"]}}}),),
        (
            Entry("datatrove", "repetition", "datatrove (Gopher)"),
            Entry("data-juicer", "repetition-words", "data-juicer (words)", "one statistic"),
            Entry("data-juicer", "repetition-characters", "data-juicer (characters)", "one statistic"),
        ),
        False,
    ),
    Stage(
        "quality",
        "Gopher quality filter",
        "english",
        (Ours("parse", "filter", {"clean": {"quality_rules": {"presets": ["gopher"]}}}),),
        (Entry("datatrove", "quality", "datatrove"),),
        False,
    ),
    Stage(
        "c4",
        "C4 quality filter",
        "english",
        (Ours("parse", "filter", {"clean": {"quality_rules": {"presets": ["c4"]}}}),),
        (Entry("datatrove", "c4", "datatrove"),),
        False,
    ),
    Stage(
        "alphanumeric",
        "Share of letters and digits",
        "all",
        (Ours("parse", "filter"),),
        (Entry("data-juicer", "alphanumeric", "data-juicer"),),
        False,
    ),
    Stage(
        "unicode",
        "Unicode repair",
        "all",
        (Ours(),),
        (Entry("data-juicer", "unicode", "data-juicer (ftfy)"),),
        False,
    ),
)
