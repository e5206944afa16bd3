"""Texts on disk come back by number, whatever was asked before and however little is kept."""

from pathlib import Path

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataflow_ops.layers.dedup.textfile import TextFile

TEXTS = st.lists(st.lists(st.text(max_size=30), max_size=6), max_size=6)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, st.sampled_from([0, 100, 10**6]), st.randoms())
def test_texts_by_number(tmp_path: Path, parts: list[list[str]], limit: int, draw: object) -> None:
    path = tmp_path / "texts"
    with TextFile(path, limit) as file:
        for part in parts:
            whole = pa.array(["before", *part, "after"], pa.large_string())
            file.append(whole.slice(1, len(part)))
        texts = [text for part in parts for text in part]
        asked = [*range(len(texts)), *reversed(range(len(texts)))]
        draw.shuffle(asked)  # type: ignore[attr-defined]
        assert [file.text(i) for i in asked] == [texts[i] for i in asked]
    assert not path.exists()
