"""Rows of dialogue: turns through a whole run, tokens by a tokenizer of the training framework."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.cases.conftest import NewFolder
from tests.cases.product import CASES, Product, Ran

SPECIAL = ["<|endoftext|>", "<|im_end|>"]


def _turns(name: str, field: str) -> dict[str, list[dict[str, str]]]:
    lines = (CASES / "dialogue" / f"{name}.jsonl").read_text("utf-8").splitlines()
    return {row["id"]: row[field] for row in map(json.loads, lines)}


def test_all_turns_in_order(ran: Ran) -> None:
    found = {d["source_record_id"]: json.loads(d["messages"]) for d in ran.docs("dialogue", "messages.jsonl")}
    assert found == _turns("messages", "messages")
    assert not ran.letters("dialogue", "messages.jsonl")


def test_dialogues_reach_the_shards_whole(ran: Ran) -> None:
    rows = {r["path"]: r for r in ran.product.exported() if r["source"] == "dialogue"}
    assert set(rows) >= {"messages.jsonl", "sharegpt.jsonl", "special_tokens.jsonl"}
    assert all(json.loads(r["messages"]) for r in rows.values())


def test_sharegpt_becomes_the_same_rows(ran: Ran) -> None:
    doc = ran.doc("dialogue", "sharegpt.jsonl")
    roles = {"human": "user", "gpt": "assistant"}
    wanted = [
        {"role": roles[t["from"]], "content": t["value"]} for t in _turns("sharegpt", "conversations")["g1"]
    ]
    assert json.loads(doc["messages"]) == wanted
    assert doc["kind_hint"] == "dialogue"


@pytest.fixture(scope="module")
def tokenizer(new_folder: NewFolder) -> Path:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator([path.read_text("utf-8") for path in (CASES / "text").glob("*.txt")], trainer)
    path = new_folder("tokenizer") / "tokenizer.json"
    backend.save(str(path))
    return path


def test_special_strings_count_as_the_text_they_are(tmp_path: Path, tokenizer: Path) -> None:
    product = Product(
        tmp_path,
        [{"source_id": "d", "kind": "jsonl", "path": f"{CASES}/dialogue", "domain": "dialogue"}],
        {"mixing": {"tokenizer": str(tokenizer)}},
    )
    assert product.run().code == 0
    backend = Tokenizer.from_file(str(tokenizer))
    special = {backend.token_to_id(token) for token in SPECIAL}
    rows = product.exported()
    (mentions,) = [r for r in rows if r["path"] == "special_tokens.jsonl"]
    assert all(token in mentions["text"] for token in SPECIAL)
    naive = backend.encode(mentions["text"], add_special_tokens=False)
    assert special <= set(naive.ids)  # a tokenizer left as it comes would emit them
    backend.encode_special_tokens = True
    for row in rows:
        plain = backend.encode(row["text"], add_special_tokens=False)
        assert not special & set(plain.ids)
        assert backend.decode(plain.ids) == row["text"]
        assert row["tokens"] == len(plain.ids)
    assert mentions["tokens"] > len(naive.ids)
    assert not product.manifest()["tokens_estimated"]
    assert product.manifest()["totals"]["tokens"] == sum(r["tokens"] for r in rows)
