from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.kernels.bytepairs import FEATURES, features


@given(st.lists(st.text(max_size=60), max_size=12))
def test_features_are_what_a_plain_reading_counts(texts: list[str]) -> None:
    table = features(pa.array(texts, pa.large_string()))
    names = list(FEATURES)
    assert table.shape == (len(texts), len(names))
    for text, row in zip(texts, table.tolist(), strict=True):
        found = dict(zip(names, row, strict=True))
        data = text.encode()
        assert found["ASCII letters"] == sum(c < 128 and chr(c).isalpha() for c in data)
        assert found["digits"] == sum(48 <= c <= 57 for c in data)
        assert found["Han"] == sum("\u4000" <= c <= "\u9fff" for c in text)
        assert found["kana"] == sum("\u3040" <= c <= "\u3fff" for c in text)
        assert found["Hangul"] == sum("\ua000" <= c <= "\udfff" for c in text)
        two = found["Latin letters with accents"] + found["other two-byte characters"]
        assert two == sum(0x80 <= ord(c) < 0x800 for c in text)
