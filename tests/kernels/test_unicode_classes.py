"""The table of classes is what the definition says of every code point."""

from __future__ import annotations

import unicodedata

import numpy as np

from dataflow_ops.kernels import unicode_classes as u


def test_every_code_point_has_the_class_that_its_category_and_name_give() -> None:
    table = u.class_table()
    defined = np.array([u._class_of(chr(c)) for c in range(0x40000)], np.uint8)
    defined[[0x3005, 0x3007, 0x303B]] = u.HAN  # their names do not start with CJK
    private = [c for c in range(0xD800, 0xF900) if unicodedata.category(chr(c)) in ("Cs", "Co")]
    assert (table[private] == u.OTHER).all()
    defined[private] = u.OTHER
    assert np.flatnonzero(table[:0x40000] != defined).tolist() == []
    above = np.flatnonzero(table[0x40000:]) + 0x40000
    assert above.tolist() == list(range(0xE0100, 0xE01F0))
