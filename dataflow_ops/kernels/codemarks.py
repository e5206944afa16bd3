"""Marks of program code in a document: which characters stand together, and how its lines begin and end.

One pass counts pairs of neighbouring bytes through a table of their roles, all counts in the lanes of one
64-bit sum, so that a byte costs two look-ups and an addition; a second looks at both ends of each line.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dataflow_ops.kernels.arrow import I64, U8, U64
from dataflow_ops.kernels.counts import frozen
from dataflow_ops.kernels.words import mix

VERSION = 1
COLUMNS = (
    "gaps",  # a letter or a byte outside ASCII, then a blank
    "mixed",  # a letter beside a digit
    "attributes",  # a full stop, then a letter
    "underscores",  # _ beside a small letter, each side counted
    "assignments",  # = beside a blank or a word character, each side counted
    "brackets",  # ( ) [ ] { } ;
    "quotes",  # " ' ` behind anything but a letter
    "shouted",  # two capital letters
    "lines",  # lines that hold more than blanks; the columns below count these only
    "indented",  # beginning with two blanks or a tab
    "statements",  # beginning with a word that begins statements and seldom lines of prose
    "connectives",  # beginning with a word that begins both
    "comments",  # beginning with a comment mark of some language, a prompt or a decorator
    "closed",  # ending in ; { } or ):
    "open",  # ending in , ( [ = \ & or in : that no ) precedes
    "stopped",  # ending in a full stop
)
_FIELD = {name: i for i, name in enumerate(COLUMNS)}
_LANES = 8
_LINES, _INDENTED, _STATEMENTS, _CONNECTIVES, _COMMENTS, _CLOSED, _OPEN, _STOPPED = range(_LANES, _LANES + 8)
_BLOCK = 120  # a lane grows by two per byte at most and holds 255
_LONGEST = 20  # bytes of a first word that are looked up

_OTHER, _SMALL, _CAPITAL, _DIGIT, _LOW, _BLANK, _NEWLINE, _DOT, _EQUAL, _BRACKET, _QUOTE, _HIGH = range(12)
_ROLES = 16  # a power of two, so that a pair is found by a shift
_CHARACTERS = (
    ("abcdefghijklmnopqrstuvwxyz", _SMALL),
    ("ABCDEFGHIJKLMNOPQRSTUVWXYZ", _CAPITAL),
    ("0123456789", _DIGIT),
    ("_", _LOW),
    (" \t\r\f\v", _BLANK),
    ("\n", _NEWLINE),
    (".", _DOT),
    ("=", _EQUAL),
    ("()[]{};", _BRACKET),
    ("\"'`", _QUOTE),
)

# Keywords and frequent first words of C, C++, C#, CMake, Go, Java, JavaScript, Kotlin, Lua, Perl, PHP,
# Python, Ruby, Rust, shell, SQL, Swift, Tcl, TypeScript and Vim, after their references.
STATEMENTS = """
abstract alter assert async await auto autocmd boolean break byte case catch char chmod class const
constexpr continue def defer defmodule defp del double echo elif elsif elseif endfunction endif enum esac
eval except exec explicit export extends extern fallthrough fi final finally float fn foreach func function
global goto guard hi impl import incr inline instanceof int interface internal lambda lappend let local long
message mod module mov mut mutable my namespace nil nnoremap noexcept nonlocal null override package pass
print printf private println proc protected pub public puts raise readonly register require rescue return
self set short signed sizeof static str string struct sub sudo super switch syn synchronized template this
throw throws trait try tuple typedef typename uint undef union unless unset unsigned unsafe upvar using val
values var virtual void volatile while xor yield ADD ALTER AND BEGIN COMMENT CONSTRAINT CREATE DECLARE
DELETE DROP END EXECUTE FOREIGN FROM GRANT GROUP HAVING INNER INSERT INTO JOIN LANGUAGE LEFT LIMIT ON OR
ORDER PRIMARY REFERENCES RETURNS REVOKE SELECT SET TABLE UNION UPDATE VALUES WHERE WITH #include #define
#ifdef #ifndef #if #endif #else #elif #pragma #undef #!/bin/sh #!/bin/bash #!/usr/bin/env
""".split()
CONNECTIVES = """
all and as cd do done else end fail for from if in is match new not of on or otherwise range select then to
type until use when with
""".split()
_SLOTS = 1024


def _word_table() -> tuple[U64, U8]:
    """Open-addressing table of the words: hashes; 1 for a statement, 2 for a connective, 0 for nothing."""
    keys, kinds = np.zeros(_SLOTS, np.uint64), np.zeros(_SLOTS, np.uint8)
    for kind, words in ((1, STATEMENTS), (2, CONNECTIVES)):
        for word in words:
            h = 0
            for byte in word.encode():
                h = ((h ^ byte) * 0x100000001B3 + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
            slot = int(mix(np.uint64(h))) % _SLOTS
            while kinds[slot]:
                slot = (slot + 1) % _SLOTS
            keys[slot], kinds[slot] = h, kind
    return keys, kinds


def _role_table() -> U8:
    roles = np.full(256, _OTHER, np.uint8)
    roles[128:] = _HIGH
    for chars, role in _CHARACTERS:
        roles[[ord(char) for char in chars]] = role
    return roles


def _pair_table() -> U64:
    """Lane increments for a byte, at ``role before × 16 + own role``."""
    table = np.zeros((_ROLES, _ROLES), np.uint64)

    def add(lane: int, befores: tuple[int, ...], owns: tuple[int, ...]) -> None:
        for before in befores:
            table[before, list(owns)] += np.uint64(1 << (8 * lane))

    letters, every = (_SMALL, _CAPITAL), tuple(range(_ROLES))
    beside_equal = (*letters, _DIGIT, _LOW, _BLANK)
    add(0, (*letters, _HIGH), (_BLANK,))
    add(1, letters, (_DIGIT,))
    add(1, (_DIGIT,), letters)
    add(2, (_DOT,), (*letters, _LOW))
    add(3, (_SMALL,), (_LOW,))
    add(3, (_LOW,), (_SMALL,))
    add(4, beside_equal, (_EQUAL,))
    add(4, (_EQUAL,), beside_equal)
    add(5, every, (_BRACKET,))
    add(6, tuple(role for role in every if role not in letters), (_QUOTE,))
    add(7, (_CAPITAL,), (_CAPITAL,))
    return table.reshape(-1)


@njit(cache=True, inline="always")
def _pairs(data, start, stop, roles, pairs, breaks, out):  # type: ignore[no-untyped-def]
    """Add up the lanes of one document; note where its line feeds are. Returns their number."""
    j, n = start, 0
    before = np.uint64(_NEWLINE)  # a text begins like a line
    while j < stop:
        end = min(j + np.uint64(_BLOCK), stop)
        sums = np.uint64(0)
        while j < end:
            own = np.uint64(roles[data[j]])
            sums += pairs[(before << np.uint64(4)) | own]
            breaks[n] = j
            n += own == _NEWLINE
            before = own
            j += np.uint64(1)
        for lane in range(_LANES):
            out[lane] += np.int64((sums >> np.uint64(8 * lane)) & np.uint64(0xFF))
    return n


@njit(cache=True, inline="always")
def _is_comment(a, b, c):  # type: ignore[no-untyped-def]
    """Whether a line that begins with these three bytes (0 behind its end) begins with a comment mark."""
    if a == 35:  # "# " and "#!"
        return b == 32 or b == 33
    if a == 47:  # // and /*
        return b == 47 or b == 42
    if a == 42:  # */; lines within /* */ look like bullets
        return b == 47
    if a == 45:  # "-- "
        return b == 45 and c == 32
    if a == 34 or a == 39 or a == 62:  # triple quotes and >>>
        return b == a and c == a
    return a == 64 and (b | 32) >= 97 and (b | 32) <= 122  # a decorator or annotation


@njit(cache=True)
def _marks(data, offsets, roles, pairs, keys, kinds, breaks, out):  # type: ignore[no-untyped-def]
    one = np.uint64(1)
    for row in range(offsets.size - 1):
        i, behind_text = np.uint64(offsets[row]), np.uint64(offsets[row + 1])
        n = _pairs(data, i, behind_text, roles, pairs, breaks, out[row])
        breaks[n] = behind_text
        for line in range(n + 1):
            begin, stop = i, breaks[line]
            while i < stop and roles[data[i]] == _BLANK:
                i += one
            first = i
            h = np.uint64(0)
            directive = i < stop and data[i] == 35
            while i < stop and i < first + np.uint64(_LONGEST):
                role, byte = roles[data[i]], data[i]
                # The slash and the exclamation mark belong to #!/bin/sh.
                if (
                    role != _SMALL
                    and role != _CAPITAL
                    and not (directive and (byte == 35 or byte == 33 or byte == 47))
                ):
                    break
                h = (h ^ np.uint64(byte)) * np.uint64(0x100000001B3) + np.uint64(0x9E3779B97F4A7C15)
                i += one
            word = i - first
            i = stop + one
            end = stop  # the byte behind the last one that is no blank
            while end > first and roles[data[end - one]] == _BLANK:
                end -= one
            size = end - first
            if size == 0:
                continue
            out[row, _LINES] += 1
            out[row, _INDENTED] += first - begin >= 2 or (first > begin and data[begin] == 9)
            if word > 1:
                slot = mix(h) & np.uint64(_SLOTS - 1)
                while kinds[slot] != 0 and keys[slot] != h:
                    slot = (slot + one) & np.uint64(_SLOTS - 1)
                out[row, _STATEMENTS] += kinds[slot] == 1
                out[row, _CONNECTIVES] += kinds[slot] == 2
            second = data[first + one] if size > 1 else np.uint8(0)
            third = data[first + one + one] if size > 2 else np.uint8(0)
            out[row, _COMMENTS] += _is_comment(data[first], second, third)
            z = data[end - one]
            behind = size > 1 and z == 58 and data[end - one - one] == 41
            out[row, _CLOSED] += z == 59 or z == 123 or z == 125 or behind
            opens = z == 44 or z == 40 or z == 91 or z == 61 or z == 92 or z == 38
            out[row, _OPEN] += opens or (z == 58 and not behind)
            out[row, _STOPPED] += z == 46


def code_marks(data: U8, offsets: I64, most_lines: int) -> I64:
    """Marks of code in each document.

    Args:
        data: UTF-8 bytes.
        offsets: int64 of shape ``(n + 1,)``.
        most_lines: at least the number of line feeds of every document.

    Returns:
        int64 of shape ``(n, len(COLUMNS))``; see :data:`COLUMNS`. Lines are cut at LF only, blanks are ASCII.

    """
    out = np.zeros((offsets.size - 1, len(COLUMNS)), np.int64)
    breaks = np.empty(most_lines + 2, np.uint64)
    tables = _role_table(), _pair_table(), *_word_table()
    _marks(frozen(data), frozen(offsets), *tables, breaks, out)
    return out


def column(marks: I64, name: str) -> I64:
    """One column of :func:`code_marks` by its name."""
    found: I64 = marks[:, _FIELD[name]]
    return found


def warm() -> None:
    """Compile for the types that batches have."""
    data = np.frombuffer("def f(x):\n    # 中文\n".encode(), np.uint8)
    code_marks(data, np.array([0, data.size], np.int64), 2)
