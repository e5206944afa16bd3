"""A small real corpus in several media types, the same every time on one machine."""

from __future__ import annotations

import json
import shutil
import sysconfig
from pathlib import Path

CASES = Path(__file__).resolve().parents[1] / "cases" / "data"


def build(root: Path, code: int = 60, docs: int = 60) -> Path:
    """Write sources under ``root`` and a job file; return the job's path."""
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    site = Path(sysconfig.get_paths()["purelib"])
    (root / "code").mkdir(parents=True)
    taken = [p for p in sorted(stdlib.glob("*.py")) if 2_000 < p.stat().st_size < 40_000][:code]
    for path in taken:
        shutil.copyfile(path, root / "code" / path.name)
    (root / "docs").mkdir()
    texts = []
    for path in sorted(site.glob("*.dist-info/METADATA")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if 2_000 < len(text) < 20_000 and len(texts) < docs:
            texts.append(text)
            (root / "docs" / f"{path.parent.name}.md").write_text(text, encoding="utf-8")
    rows = []
    for i, text in enumerate(texts):
        words = text.split(" ")
        if i % 3 == 0:
            rows.append({"id": f"copy-{i}", "text": text})
        if i % 4 == 0:
            rows.append({"id": f"near-{i}", "text": " ".join(w for k, w in enumerate(words) if k % 97 != 5)})
        if i % 10 == 0:
            rows.append({"id": f"loop-{i}", "text": text[:60] * 60})
    (root / "rows").mkdir()
    for part in range(4):
        lines = "".join(json.dumps(r) + "\n" for r in rows[part::4])
        (root / "rows" / f"part-{part}.jsonl").write_text(lines, encoding="utf-8")
    shutil.copytree(CASES / "html", root / "pages")
    shutil.copyfile(CASES / "jsonl" / "broken_line.jsonl", root / "rows" / "broken.jsonl")
    job = root / "job.yaml"
    job.write_text(
        f"""dataset: {{id: tiny}}
sources:
  - {{source_id: code, kind: files, path: {root}/code, domain: code}}
  - {{source_id: docs, kind: files, path: {root}/docs, domain: docs}}
  - {{source_id: rows, kind: jsonl, path: {root}/rows, domain: docs}}
  - {{source_id: pages, kind: files, path: {root}/pages, domain: web}}
ingest: {{chunk_mb: 0.2}}
run: {{max_dead_share: 0.5, max_attempts: 50}}
output: {{partition_by: [domain], version: t, shards: 6}}
""",
        encoding="utf-8",
    )
    return job
