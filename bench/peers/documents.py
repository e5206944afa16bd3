"""The part of the corpus that all tools get: ``python -m bench.peers.documents DOCS N OUT``.

Writes ``OUT/all/`` (first the Latin documents, then the Chinese ones: a tool that is told the language of a
run gets each with its own), ``OUT/english/`` (without code, for filters that know English alone),
``OUT/truth.parquet`` (id, label, lang, dup_of) and ``OUT/about.json``. A copy and what it was made from go
together, so recall can be measured; otherwise a document is in by the hash of its id.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def chosen(table: pa.Table, wanted: int) -> pa.Table:
    """About ``wanted`` documents; all where that is 0 or more than there are."""
    if not 0 < wanted < table.num_rows:
        return table
    share = wanted / table.num_rows
    of = zip(table["id"].to_pylist(), table["dup_of"].to_pylist(), strict=True)
    heads = (of if of >= 0 else doc for doc, of in of)
    return table.filter(pa.array([_unit(head) < share for head in heads]))


def _unit(number: int) -> float:
    digest = hashlib.sha256(str(number).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def main() -> None:
    docs, wanted, out = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    table = chosen(pq.read_table(docs), wanted)
    han = pc.equal(table["lang"], "zh")
    english = table.filter(pc.equal(table["lang"], "en"))
    for name, part in (
        ("all/0-latin", table.filter(pc.invert(han))),
        ("all/1-han", table.filter(han)),
        ("english/0-latin", english),
    ):
        path = out / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part.select(["id", "text"]), path, compression="zstd", row_group_size=8192)
    pq.write_table(table.select(["id", "label", "lang", "dup_of"]), out / "truth.parquet")
    digest = hashlib.sha256()
    for text in table["text"].to_pylist():
        digest.update(text.encode())
    about = {
        "sha256": digest.hexdigest(),
        "all": table.num_rows,
        "english": english.num_rows,
        "bytes": pc.sum(pc.binary_length(table["text"])).as_py(),
        "characters": pc.sum(pc.utf8_length(table["text"])).as_py(),
    }
    (out / "about.json").write_text(json.dumps(about))


if __name__ == "__main__":
    main()
