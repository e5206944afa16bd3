"""The page of rules, made from the tables: ``python -m dataflow_ops.layers.filter.page > docs/rules.md``."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from dataflow_ops.layers.filter.presets import PRESETS
from dataflow_ops.layers.filter.rule import KINDS, Rule
from dataflow_ops.layers.filter.rules import RULES

_INTRODUCTION = """\
# Rules of the filter

Made from the tables in `dataflow_ops/layers/filter/` by `python -m dataflow_ops.layers.filter.page`; a test
fails when they differ.

A document is judged by gate **L1**, which counts characters, then by **L2**. Every statistic of a gate is
measured for every document that reaches it and stored in `stats`; the first rule that fails, in the order of
the table, is named in `rejects` with its exact value and bound. Bounds are inclusive. A statistic that can't
be measured never passes.

A rule judges the kinds of text named with it: `prose`, `code`, `table`, `dialogue`. The parser's hint says
which are code and dialogues; without one, the text itself decides (below). `code: ≥ 0.09` is a bound of that
kind alone.

Without a hint, as in a Parquet source, a document is `code` where a score of fifteen marks is above zero: per
character, blanks between words, digits in words, dots, underscores, `=`, brackets, quotes and runs of
capitals; per line, indentation, first words, comment marks and how lines end. The weights are a logistic
regression in integers. Where 40 % of five or more lines end in `;`, `{`, `}` or `):`, a score that is not far
below zero suffices; a `table` has two tabs or bars in 60 % of five or more lines. On the half of the corpus
that the weights were not fitted on (`bench/code_kind.py`):

| documents | taken for code |
|---|---|
| Python | 96 % (the rest is docstrings) |
| C, C++, JavaScript, CSS, SQL, shell, Fortran | 85 to 100 % |
| Perl, PHP, Tcl, CMake | 64 to 86 % |
| Vim script, Lisp, assembler | under half: give a hint |
| English handbooks, guides and man pages | 0 to 6 % |
| English pages on programming, with listings | 1 to 10 % |
| the same of Node.js, Rust and Django, with sources | 21 to 35 % |
| Chinese | 0.25 % (kernel documentation 5 %) |

An English page that is one listing is code to this score, whatever the page's label says. Of all clean code
the filter refuses 0.9 %; it was 11.4 % when line endings alone decided. One bound of code is looser than
before: `zlib_ratio` 0.09 instead of 0.12, which tables of constants fell below; no loop lies above 0.07.
Injected faults are refused as often when every document is judged as code.

Only the rules' view is folded (NFKC, lower case); the stored text stays as it is.

Settings, under `clean.quality_rules`: `disable` and `enable` take names; `rules` sets bounds by name, or for
one kind as `zlib_ratio.code`; `presets` adds the published sets below. Names of RedPajama's quality signals
are understood too. A general bound that is looser than a kind's own loosens the kind's.
"""
_FLOORS = """\

`zlib_ratio` and `zlib_window` are compressed only where a cheap estimate can't settle them; elsewhere the
value is null and `zlib_ratio_floor` or `zlib_window_floor` says what it does not fall below. Refused
documents always have the exact value.
"""

_WHAT_IF = """\

## What would other bounds do?

`dataflow whatif JOB --set …` answers from what a finished run stored, without running anything:

```
$ dataflow whatif job.yaml --set clean.quality_rules.max_repetition_ratio=0.5 \\
      --set clean.boilerplate_filter.min_text_len=60
Run bench-full-20261130T075126-f8bf (full), 138,920 documents
  clean.boilerplate_filter.min_text_len: 120 -> 60
  clean.quality_rules.max_repetition_ratio: not set -> 0.5
The filter would keep 129,897 instead of 131,542: 8 gained, 1,653 lost; 6 refused by another rule.
9 documents measured anew; stored statistics decided the others.

Rule by rule
from              to                  documents
(kept)            repetition_ratio        1,653
length            (kept)                      8
avg_sentence_len  repetition_ratio            4
length            meaningful_ratio            1
length            top_ngram_coverage          1
```

Below that it counts by domain and language (the label where a document got one, else its script) and shows
twenty documents that would be gained or lost:

```
gained  4c68b9e0efb0c27c71872ea772ec12e2  corpus  length 60 (low bound 64 -> 60)
    import io import re import urllib.parse from collections.abc
lost  005e08645e5ecfd450f44d0e04f130f5  corpus  repetition_ratio 0.5468 (high bound 0.9 -> 0.5)
    Parameters: sql - an SQL statement that may contain one or more '?' IN parameter placeholders columnNa
```

The counts are those of `dataflow run JOB --set …` with the same settings over the same documents: the same
functions decide. A document is measured anew only where the stored statistics leave open which rule refuses
it first: L1 had stopped it and would not any more, a floor does not reach the new bound, or a preset or a
list of bad words needs a statistic that was not measured. Where the filter's code has changed since the run,
all are measured anew, and a note says so.

`--set` takes `clean.quality_rules` with all in it and `clean.boilerplate_filter.min_text_len`; what a job
file says now and the run did not is counted too. `--run RUN` asks another run than the newest finished full
one; a newer one that was passed over (a day, a run with `--set`, one whose version waits) is named in a note.
Dedup, score and mix come after the filter and are not part of the answer.
"""


def rules_page() -> str:
    """The page as Markdown."""
    judging = [rule for rule in RULES if _bounds(rule)]
    measured = [rule for rule in RULES if not _bounds(rule)]
    parts = [_INTRODUCTION, "\n## Default rules\n\n", _table(judging), _FLOORS]
    parts += ["\n## Measured only, until a job gives bounds\n\n", _table(measured)]
    for name, rules in PRESETS.items():
        parts += [f"\n## Preset `{name}`\n\n", _table(rules)]
    parts.append(_WHAT_IF)
    return "".join(parts)


def _table(rules: Sequence[Rule]) -> str:
    lines = [
        "| rule | gate | statistic | bounds | judges | gets wrong | source |",
        "|---|---|---|---|---|---|---|",
    ]
    for rule in rules:
        said = _markdown(rule.measure.__doc__ or "").replace("|", "\\|")
        bounds = _bounds(rule) or "none"
        bounds += "" if rule.default else " (off)"
        alias = f" (`{rule.alias}`)" if rule.alias else ""
        kinds = (
            "all"
            if len(rule.applies_to) == len(KINDS)
            else ", ".join(k for k in KINDS if k in rule.applies_to)
        )
        lines.append(
            f"| `{rule.name}`{alias} | {rule.gate} | `{rule.statistic}`: {said} | {bounds} | {kinds}"
            f" | {rule.errs or '–'} | {rule.source} |"
        )
    return "\n".join(lines) + "\n"


def _markdown(docstring: str) -> str:
    """One line, without the marks of reStructuredText that Markdown does not know."""
    plain = re.sub(r":[a-z]+:`~?([^`]+)`", r"`\1`", " ".join(docstring.split()))
    return plain.replace("``", "`")


def _bounds(rule: Rule) -> str:
    parts = _range(rule.low, rule.high)
    for kind, bounds in rule.by_kind.items():
        parts += [f"{kind}: {' '.join(_range(bounds.low, bounds.high))}"]
    return "; ".join(parts)


def _range(low: float | None, high: float | None) -> list[str]:
    found = [] if low is None else [f"≥ {low:,g}"]
    return found + ([] if high is None else [f"≤ {high:,.10g}"])


if __name__ == "__main__":
    sys.stdout.write(rules_page())
