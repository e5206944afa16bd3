"""All statistics over the units of a text, document by document, on one pass of tokenising."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from dataflow_ops.kernels import ngrams
from dataflow_ops.kernels.arrow import F64, I64, U8, U32, U64, ix
from dataflow_ops.kernels.counts import frozen
from dataflow_ops.kernels.ngrams import count, find, narrow, runs
from dataflow_ops.kernels.unicode_classes import class_table, fold_table
from dataflow_ops.kernels.words import VERSION as WORDS_VERSION
from dataflow_ops.kernels.words import scratch, table_size, tokenise, units_of

VERSION = (1, WORDS_VERSION, ngrams.VERSION)

UNITS, SEGMENTS, CHARS, LETTERED, STUFFING, FUNCTION_SHARE, FUNCTION_SPREAD, TARGETS = range(8)
COLUMNS = 8
"""Fixed columns; after them come the top n-grams, the repeated n-grams and the phrase classes, as asked."""

MIN_UNITS = 50
"""Texts of fewer units are concentrated by nature: their stuffing is 0."""
_TOP_WORDS = 8
_TOP_CHARACTERS = 16  # a Chinese keyword is about two characters


class Lexicon(NamedTuple):
    """Word lists as arrays of unit hashes, as compiled code reads them; made by :func:`lexicon`.

    Attributes:
        keys: open-addressing table of function words, uint64.
        used: int32, 1 where a slot is filled.
        languages: uint64, bit l set where language l has the word.
        hints: uint64 of shape ``(1024,)``: a bit set for the first 16 bits of every function word's hash.
        min_share: float64 per language: share of units that function words have at least in its prose.
        min_spread: float64 per language: effective number of different function words, at least.
        phrase_hints: likewise for phrases' first units.
        phrase_keys: open-addressing table of phrases' first units, uint64.
        phrase_used: int32, 1 + index of the first phrase that begins with it; 0 where empty.
        phrase_next: int32, 1 + index of another phrase that begins alike; 0 at the end.
        phrase_offsets: int64 of shape ``(phrases + 1,)`` into ``phrase_units``.
        phrase_units: uint64 unit hashes of all phrases.
        phrase_class: int32 class of each phrase.
        by_segment: bool per class: a phrase marks its whole segment, not only itself.

    """

    keys: U64
    used: npt.NDArray[np.int32]
    languages: U64
    hints: U64
    min_share: F64
    min_spread: F64
    phrase_hints: U64
    phrase_keys: U64
    phrase_used: npt.NDArray[np.int32]
    phrase_next: npt.NDArray[np.int32]
    phrase_offsets: I64
    phrase_units: U64
    phrase_class: npt.NDArray[np.int32]
    by_segment: npt.NDArray[np.bool_]


def lexicon(
    function_words: Mapping[str, Sequence[str]],
    references: Sequence[tuple[float, float]],
    phrases: Sequence[tuple[str, int]],
    by_segment: Sequence[bool],
) -> Lexicon:
    """Turn word lists into arrays.

    Args:
        function_words: language -> its function words, each a single unit; at most 64 languages.
        references: per language least share and least spread.
        phrases: ``(phrase, class)``; a phrase is any number of units in a row inside one segment.
        by_segment: per class, whether a phrase marks its whole segment.

    """
    masks: dict[int, int] = {}
    for bit, words in enumerate(function_words.values()):
        for word in words:
            for h in units_of(word)[0]:
                masks[int(h)] = masks.get(int(h), 0) | (1 << bit)
    keys, used = _table(list(masks), [1] * len(masks))
    languages = np.zeros(keys.size, np.uint64)
    for h, mask in masks.items():
        languages[find(keys, used, np.uint64(keys.size - 1), np.uint64(h))] = mask

    units = [units_of(phrase)[0] for phrase, _ in phrases]
    heads: dict[int, int] = {}
    chain = np.zeros(max(1, len(units)), np.int32)
    for index, unit in enumerate(units):
        chain[index] = heads.get(int(unit[0]), 0)
        heads[int(unit[0])] = index + 1
    phrase_keys, phrase_used = _table(list(heads), list(heads.values()))
    return Lexicon(
        keys,
        used,
        languages,
        _hints(list(masks)),
        np.array([r[0] for r in references], np.float64),
        np.array([r[1] for r in references], np.float64),
        _hints(list(heads)),
        phrase_keys,
        phrase_used,
        chain,
        np.concatenate([[0], np.cumsum([u.size for u in units])]).astype(np.int64),
        np.concatenate([*units, np.zeros(1, np.uint64)]),
        np.array([c for _, c in phrases] or [0], np.int32),
        np.array(by_segment, np.bool_),
    )


def _table(hashes: Sequence[int], values: Sequence[int]) -> tuple[U64, npt.NDArray[np.int32]]:
    # Sparse, because most units looked up are in no list: an empty slot answers at once.
    size = int(table_size(4 * len(hashes) + 1))
    keys, used = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    for h, value in zip(hashes, values, strict=True):
        slot = find(keys, used, np.uint64(size - 1), np.uint64(h))
        keys[slot], used[slot] = h, value
    return keys, used


def _hints(hashes: Sequence[int]) -> U64:
    bits = np.zeros(1024, np.uint64)
    for h in hashes:
        bits[h >> 54] |= np.uint64(1) << np.uint64((h >> 48) & 63)
    return bits


@njit(cache=True, inline="always")
def _may_be_in(hints, h):  # type: ignore[no-untyped-def]
    """Whether a table may hold a hash: 8 KB, always in the cache, say no to nearly all that it does not."""
    return (hints[h >> np.uint64(54)] >> ((h >> np.uint64(48)) & np.uint64(63))) & np.uint64(1) != 0


@njit(cache=True)
def _function_words(words, lex, keys, values, order, n_distinct, n, share, logs):  # type: ignore[no-untyped-def]
    """Language whose function words cover most of the text, their share and their spread."""
    share[:] = 0.0
    logs[:] = 0.0
    mask = np.uint64(lex.keys.size - 1)
    for d in range(n_distinct):
        own = ix(order[ix(d)])
        if not _may_be_in(lex.hints, keys[own]):
            continue
        slot = find(lex.keys, lex.used, mask, keys[own])
        if lex.used[slot] == 0:
            continue
        bits = lex.languages[slot]
        count = float(values[own])
        for language in range(share.size):
            if (bits >> np.uint64(language)) & np.uint64(1):
                share[ix(language)] += count
                logs[ix(language)] += count * np.log2(count)
    best = 0
    for language in range(1, share.size):
        if share[language] > share[best]:
            best = language
    if share[best] == 0:
        return -1, 0.0, 0.0
    spread = 2.0 ** (np.log2(share[best]) - logs[best] / share[best])
    return best, share[best] / n, spread


@njit(cache=True)
def _stuffing(hashes, lengths, n, lex, keys, values, order, slots, share, logs, targets):  # type: ignore[no-untyped-def]
    """Concentration of content words; see :func:`measure`."""
    size = table_size(n)
    mask = np.uint64(size - 1)
    values[:size] = 0
    n_distinct, single = 0, 0
    for i in range(n):
        key = hashes[ix(i)]
        slot = find(keys, values, mask, key)
        if values[slot] == 0:
            keys[slot] = key
            order[ix(n_distinct)] = slot
            n_distinct += 1
        slots[ix(i)] = slot
        values[slot] += 1
        single += lengths[ix(i)] == 1
    found = 0
    for j in range(targets.size):
        found += values[find(keys, values, mask, targets[j])] > 0
    language, function_share, spread = _function_words(
        hashes, lex, keys, values, order, n_distinct, n, share, logs
    )
    credited = (
        language >= 0 and function_share >= lex.min_share[language] and spread >= lex.min_spread[language]
    )
    k = _TOP_CHARACTERS if 2 * single > n else _TOP_WORDS
    top = np.zeros(k, np.int64)
    content = 0
    lexicon_mask = np.uint64(lex.keys.size - 1)
    for d in range(n_distinct):
        own = ix(order[ix(d)])
        times = values[own]
        if credited and _may_be_in(lex.hints, keys[own]):
            slot = find(lex.keys, lex.used, lexicon_mask, keys[own])
            if lex.used[slot] != 0 and (lex.languages[slot] >> np.uint64(language)) & np.uint64(1):
                continue
        content += times
        if times > top[k - 1]:
            j = k - 1
            while j > 0 and top[j - 1] < times:
                top[j] = top[j - 1]
                j -= 1
            top[j] = times
    stuffing = top.sum() / content if n >= MIN_UNITS and content > 0 else 0.0
    return stuffing, function_share, spread, found


@njit(cache=True)
def _phrases(hashes, lengths, segments, n, lex, marked):  # type: ignore[no-untyped-def]
    """Characters marked per class of phrases."""
    mask = np.uint64(lex.phrase_keys.size - 1)
    classes = lex.by_segment.size
    start = 0
    while start < n:
        end = start
        segment_chars = 0
        while end < n and segments[ix(end)] == segments[ix(start)]:
            segment_chars += lengths[ix(end)]
            end += 1
        seen = 0
        for i in range(start, end):
            if not _may_be_in(lex.phrase_hints, hashes[ix(i)]):
                continue
            slot = find(lex.phrase_keys, lex.phrase_used, mask, hashes[ix(i)])
            phrase = lex.phrase_used[slot]
            while phrase != 0:
                a, b = lex.phrase_offsets[phrase - 1], lex.phrase_offsets[phrase]
                same = i + (b - a) <= end
                for j in range(b - a):
                    same = same and hashes[i + j] == lex.phrase_units[a + j]
                if same:
                    c = lex.phrase_class[phrase - 1]
                    if lex.by_segment[c]:
                        seen |= 1 << c
                    else:
                        for j in range(i, i + b - a):
                            marked[c] += lengths[j]
                phrase = lex.phrase_next[phrase - 1]
        for c in range(classes):
            if (seen >> c) & 1:
                marked[c] += segment_chars
        start = end


@njit(cache=True)
def _ngrams(hashes, lengths, n, chars, sizes, columns, keys, values, slots, at, out):  # type: ignore[no-untyped-def]
    """Shares of n-grams into one document's row; keys, values and slots are those of its units.

    ``sizes`` ascend; ``columns`` says for each where the most frequent one's share and where that of the
    characters in repeats goes, -1: nowhere.
    """
    m = 0
    for j in range(sizes.size):
        size = sizes[j]
        m = runs(slots, values, n, size, at) if j == 0 else narrow(at, m, slots, values, size - sizes[j - 1])
        if m == 0:
            break
        most, inside = count(hashes, lengths, size, at, m, slots, keys, values)
        if columns[j, 0] >= 0 and most > 1:
            out[columns[j, 0]] = min(1.0, size * most / n)
        if columns[j, 1] >= 0:
            out[columns[j, 1]] = inside / chars


@njit(cache=True)
def _measure(data, offsets, rows, classes, fold, lex, targets, sizes, columns, room, out):  # type: ignore[no-untyped-def]
    hashes, lengths, segments, keys, values, order, slots, at = room
    share = np.zeros(lex.min_share.size)
    logs = np.zeros(lex.min_share.size)
    marked = np.zeros(lex.by_segment.size, np.int64)
    for k in range(rows.size):
        n, n_segments, lettered = tokenise(
            data, offsets[rows[k]], offsets[rows[k] + 1], classes, fold, hashes, lengths, segments
        )
        chars = 0
        for i in range(n):
            chars += lengths[ix(i)]
        out[k, UNITS], out[k, SEGMENTS], out[k, CHARS], out[k, LETTERED] = n, n_segments, chars, lettered
        if n == 0:
            continue
        stuffing, function_share, spread, found = _stuffing(
            hashes, lengths, n, lex, keys, values, order, slots, share, logs, targets
        )
        out[k, STUFFING], out[k, FUNCTION_SHARE], out[k, FUNCTION_SPREAD] = stuffing, function_share, spread
        out[k, TARGETS] = found
        _ngrams(hashes, lengths, n, chars, sizes, columns, keys, values, slots, at, out[k])
        column = out.shape[1] - marked.size
        marked[:] = 0
        _phrases(hashes, lengths, segments, n, lex, marked)
        for c in range(marked.size):
            out[k, column] = min(1.0, marked[c] / chars)
            column += 1


def measure(
    data: U8,
    offsets: I64,
    rows: I64,
    lex: Lexicon,
    targets: U64,
    tops: Sequence[int],
    repeats: Sequence[int],
    fold: U32 | None = None,
) -> F64:
    """Measure some documents.

    *Stuffing* is the share that the most frequent content words (8; 16 where most units are single
    characters) have of all content words. Function words of the language that covers most of the text are
    left out, but only where they appear in the share and the spread that its prose has; where a text has
    too few of them, or the same few again and again, they count as content.

    *Top n-gram*: ``min(1, n × count ÷ units)`` of the most frequent one; 0 where none occurs twice.

    Args:
        data: UTF-8 bytes.
        offsets: int64 of shape ``(n + 1,)``.
        rows: which documents, int64 of shape ``(m,)``.
        lex: word lists.
        targets: unit hashes of words of which the different ones present are counted (column ``TARGETS``).
        tops: sizes for the most frequent n-gram.
        repeats: sizes for the share of characters in repeated n-grams.
        fold: what characters become before hashing; by default NFKC and lower case.

    Returns:
        float64 of shape ``(m, COLUMNS + len(tops) + len(repeats) + classes of phrases)``: units, segments,
        characters of units, units with a letter, stuffing, share and spread of function words, targets
        found; then shares in the order asked for; then the share of characters marked by each class of
        phrases.

    """
    longest = int((offsets[rows + 1] - offsets[rows]).max()) if rows.size else 0
    s = scratch(longest)
    room = (s.hashes, s.lengths, s.segments, s.keys, s.values, s.order, s.slots, s.at)
    out = np.zeros((rows.size, COLUMNS + len(tops) + len(repeats) + lex.by_segment.size))
    sizes = sorted({*tops, *repeats})
    columns = np.full((len(sizes), 2), -1, np.int64)
    for j, size in enumerate((*tops, *repeats)):
        columns[sizes.index(size), int(j >= len(tops))] = COLUMNS + j
    table = fold_table() if fold is None else fold
    _measure(
        frozen(data),
        frozen(offsets),
        frozen(rows),
        class_table(),
        frozen(table),
        lex,
        frozen(targets),
        np.array(sizes, np.int64),
        columns,
        room,
        out,
    )
    return out


def warm() -> None:
    """Compile for the types that batches have."""
    data = np.frombuffer("one and two 中文。".encode(), np.uint8)
    lex = lexicon({"en": ["and"]}, [(0.1, 2.0)], [("one and", 0)], [True])
    measure(
        data, np.array([0, data.size], np.int64), np.zeros(1, np.int64), lex, units_of("and")[0], (3,), (5,)
    )
