"""text-dedup: its own commands, in this process; reading and writing are left out of the work."""

from __future__ import annotations

import sys
from pathlib import Path

import datasets
from clock import Clock
from datasets import Dataset
from text_dedup import exact_hash, minhash

MINHASH = ("--ngram", "5", "--num_perm", "128", "--b", "16", "--r", "8", "--min_length", "1")
FAST = ("--hash_func", "xxh3")
"""Its own faster hash; the default is SHA-1, and MD5 for exact copies."""


def main() -> None:
    stage, docs, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    module = {"exact": exact_hash, "minhash": minhash}[stage]
    clock, loaded = Clock(out), []
    load, save = module.load_hf_dataset, Dataset.save_to_disk

    def load_then_begin(*args, **named):  # type: ignore[no-untyped-def]
        found = load(*args, **named)
        loaded.append(found[0]["id"][:])
        clock.begin()
        return found

    def end_then_save(data, path, *args, **named):  # type: ignore[no-untyped-def]
        clock.end()
        save(data, path, *args, **named)

    module.load_hf_dataset, Dataset.save_to_disk = load_then_begin, end_then_save
    datasets.disable_progress_bars()
    options = ["--path", "parquet", "--split", "train", "--column", "text", "--num_proc", "1"]
    options += ["--data_files", str(docs / "*.parquet"), "--cache_dir", str(out / "cache")]
    options += ["--output", str(out / "kept"), *FAST, *(MINHASH if stage == "minhash" else ())]
    module.main(options, standalone_mode=False)
    ids = loaded[0]
    groups = None
    if stage == "minhash":
        groups = {doc: int(ids[minhash.uf.find(i)]) for i, doc in enumerate(ids)}
    clock.leave(datasets.load_from_disk(str(out / "kept"))["id"][:], groups)


if __name__ == "__main__":
    main()
