"""From a job's settings to the rules that judge, with their bounds per kind of text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from difflib import get_close_matches

import numpy as np

from dataflow_ops.errors import ConfigError
from dataflow_ops.layers.filter.presets import PRESETS
from dataflow_ops.layers.filter.rule import KINDS, ActiveRule, Bounds, Rule
from dataflow_ops.layers.filter.rules import RULES
from dataflow_ops.settings import CleanSettings, QualityRules

_WHERE = "clean.quality_rules"


def known_rules() -> dict[str, Rule]:
    """All rules by name: the default table, then the presets."""
    return {rule.name: rule for rule in (*RULES, *(r for rules in PRESETS.values() for r in rules))}


def select(clean: CleanSettings) -> tuple[ActiveRule, ...]:
    """The rules to measure, in the order in which they name the first failure.

    Explicit bounds (``rules``) win over the named settings, these over the defaults. A general bound that
    is looser than a kind's own loosens the kind's too. A preset's rule is loaded with its preset or by
    being enabled. With ``enabled: false`` everything is measured and nothing judged.

    Raises:
        ConfigError: a name is unknown, or a rule's bounds exclude each other.

    """
    quality = clean.quality_rules
    given = _given(clean)
    by_rule: dict[str, dict[str, Bounds]] = {}
    for key, bounds in given.items():
        name, _, kind = key.partition(".")
        if kind and kind not in KINDS:
            raise ConfigError(
                f"{_WHERE}.rules.{key}: unknown kind of text '{kind}'; known: {', '.join(KINDS)}"
            )
        by_rule.setdefault(_resolve(name, "rules"), {})[kind] = bounds
    disabled = {_resolve(name, "disable") for name in quality.disable}
    enabled = {_resolve(name, "enable") for name in quality.enable}

    wanted = {rule.name for rule in RULES} | enabled | set(by_rule)
    wanted |= {rule.name for preset in quality.presets for rule in PRESETS[preset]}
    loaded = [rule for rule in known_rules().values() if rule.name in wanted]
    # L1 comes first whatever set a rule is from; within a gate the tables' order stays.
    loaded.sort(key=lambda rule: rule.gate)
    active = []
    for rule in loaded:
        own = by_rule.get(rule.name, {})
        judging = quality.enabled and rule.name not in disabled
        judging = judging and (rule.default or rule.name in enabled or bool(own))
        active.append(_activate(rule, own, judging))
    return tuple(active)


def _resolve(name: str, key: str) -> str:
    rules = known_rules()
    if name in rules:
        return name
    for rule in rules.values():
        if rule.alias and rule.alias == name:
            return rule.name
    near = get_close_matches(name, list(rules), 1)
    meant = f"did you mean {near[0]}? " if near else ""
    raise ConfigError(f"{_WHERE}.{key}: unknown rule '{name}'; {meant}known: {', '.join(rules)}")


def _given(clean: CleanSettings) -> dict[str, Bounds]:
    """Bounds that the job gives, by ``rule`` or ``rule.kind``."""
    q, length = clean.quality_rules, clean.boilerplate_filter
    given: dict[str, Bounds] = {}
    if length.model_fields_set:
        given["length"] = Bounds(length.min_text_len, length.max_text_len)
    named = {
        "control_ratio": Bounds(None, q.max_control_ratio),
        "replacement_ratio": Bounds(None, q.max_replacement_ratio),
        "meaningful_ratio": Bounds(q.min_meaningful_ratio),
        "zlib_ratio": Bounds(q.min_zlib_ratio),
        "top_ngram_coverage": Bounds(None, q.max_top_ngram_coverage),
        "repetition_ratio": Bounds(None, q.max_repetition_ratio),
        "avg_sentence_len": Bounds(q.min_avg_sentence_len, q.max_avg_sentence_len),
        "bad_word_ratio": Bounds(None, q.max_bad_word_ratio),
        "entropy": Bounds(q.min_entropy),
    }
    given |= {name: bounds for name, bounds in named.items() if bounds != Bounds()}
    for key, bounds in _explicit(q).items():
        before = given.get(key, Bounds())
        given[key] = _merged(bounds, before)
    return given


def _explicit(quality: QualityRules) -> Mapping[str, Bounds]:
    found = {}
    for key, bounds in quality.rules.items():
        for value in (bounds.low, bounds.high):
            if value is not None and math.isnan(value):
                raise ConfigError(f"{_WHERE}.rules.{key}: a bound can't be NaN")
        name, dot, kind = key.partition(".")
        found[_resolve(name, "rules") + dot + kind] = Bounds(bounds.low, bounds.high)
    return found


def _merged(first: Bounds, second: Bounds) -> Bounds:
    return Bounds(
        second.low if first.low is None else first.low, second.high if first.high is None else first.high
    )


def _activate(rule: Rule, own: Mapping[str, Bounds], judging: bool) -> ActiveRule:
    default = Bounds(rule.low, rule.high)
    general = _merged(own.get("", Bounds()), default)
    judges = np.zeros(len(KINDS), np.bool_)
    low, high = np.full(len(KINDS), -np.inf), np.full(len(KINDS), np.inf)
    for code, kind in enumerate(KINDS):
        bounds = general
        if kind in rule.by_kind:
            bounds = _loosened(general, rule.by_kind[kind])
        bounds = _merged(own.get(kind, Bounds()), bounds)
        if bounds.low is not None:
            low[code] = bounds.low
        if bounds.high is not None:
            high[code] = bounds.high
        if low[code] > high[code]:
            raise ConfigError(
                f"{_WHERE}: {rule.name} for {kind}: low {low[code]:g} is above high {high[code]:g}"
            )
        judges[code] = judging and bounds != Bounds() and (kind in rule.applies_to or kind in own)
    return ActiveRule(rule, judges, low, high)


def _loosened(general: Bounds, kind: Bounds) -> Bounds:
    """The general bounds, on each side that the kind has one of its own replaced by the looser of the two."""
    lows = [low for low in (general.low, kind.low) if low is not None]
    highs = [high for high in (general.high, kind.high) if high is not None]
    return Bounds(
        general.low if kind.low is None else min(lows), general.high if kind.high is None else max(highs)
    )
