from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from dataflow_ops.clients import tokenizer as module
from dataflow_ops.clients.tokenizer import EstimateTokenizer, HfTokenizer, load_tokenizer
from dataflow_ops.errors import ConfigError

CASES = Path(__file__).parents[1] / "cases" / "data"
SPECIAL = ["<|endoftext|>", "<s>", "</s>", "<pad>"]


def corpus() -> list[str]:
    files = sorted(p for p in CASES.rglob("*") if p.suffix in {".txt", ".md", ".py", ".jsonl"})
    return [p.read_text(encoding="utf-8", errors="replace") for p in files]


def train(kind: str) -> Tokenizer:
    """A real tokenizer of each family, with special tokens and a template that would add them."""
    if kind == "bpe":
        made = Tokenizer(models.BPE())
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer: Any = trainers.BpeTrainer(vocab_size=2000, special_tokens=SPECIAL, initial_alphabet=alphabet)
    elif kind == "unigram":
        made = Tokenizer(models.Unigram())
        made.pre_tokenizer = pre_tokenizers.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=800, special_tokens=[*SPECIAL, "<unk>"], unk_token="<unk>"
        )
    else:
        made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
        made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        trainer = trainers.WordLevelTrainer(special_tokens=[*SPECIAL, "[UNK]"])
    made.train_from_iterator(corpus(), trainer)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[(t, made.token_to_id(t)) for t in ("<s>", "</s>")]
    )
    made.enable_truncation(16)
    made.enable_padding(length=32)
    return made


@pytest.fixture(scope="module", params=["bpe", "unigram", "words"])
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tok") / "tokenizer.json"
    train(request.param).save(str(path))
    return path


def texts_with_specials() -> list[str]:
    lines = (CASES / "dialogue" / "special_tokens.jsonl").read_text(encoding="utf-8").splitlines()
    return [*SPECIAL, "a <|endoftext|> b", "x<s>y</s>z", "<s> <s>", *lines]


def test_no_text_gives_a_special_id(saved: Path) -> None:
    spec = json.loads(saved.read_text())
    unknown = {"<unk>", "[UNK]"}
    special = {t["id"] for t in spec["added_tokens"] if t["content"] not in unknown}
    assert special
    plain = Tokenizer.from_file(str(saved))
    plain.no_truncation()
    assert special & set(plain.encode("a <|endoftext|> b").ids), "the test would prove nothing"
    ours = HfTokenizer(saved)
    for text in texts_with_specials():
        ids = ours._tokenizer.encode(text, add_special_tokens=False).ids
        assert ids
        assert not special & set(ids), text
    counted = ours.count(pa.array(texts_with_specials()))
    assert counted.min() >= 1


def test_counts_are_those_of_the_tokenizer_without_template_padding_or_truncation(saved: Path) -> None:
    plain = Tokenizer.from_file(str(saved))
    plain.no_truncation()
    plain.no_padding()
    texts = [t for t in corpus() if not any(s in t for s in SPECIAL)]
    expected = [len(plain.encode(t, add_special_tokens=False).ids) for t in texts]
    assert max(expected) > 16
    assert HfTokenizer(saved).count(pa.array(texts)).tolist() == expected


def test_batches_do_not_matter(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = pa.array([*corpus(), "", None, "x" * 3000] * 2, pa.large_string())
    ours = HfTokenizer(saved)
    whole = ours.count(texts)
    assert len(whole) == len(texts)
    monkeypatch.setattr(module, "_BATCH_BYTES", 200)
    assert np.array_equal(ours.count(texts), whole)
    assert np.array_equal(ours.count(pa.chunked_array([texts.slice(0, 5), texts.slice(5)])), whole)


def test_identity_is_the_files_hash_and_no_path(saved: Path) -> None:
    identity = HfTokenizer(saved).identity()
    assert identity["sha256"] == hashlib.sha256(saved.read_bytes()).hexdigest()
    assert identity["estimated"] is False
    assert str(saved.parent) not in json.dumps(dict(identity))


@pytest.mark.parametrize("content", [None, b"{", b"{}", b"\xff\xfe", b"[]"])
def test_what_is_no_tokenizer_is_a_config_error(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"mixing\.tokenizer"):
        HfTokenizer(path)


def test_no_path_gives_the_marked_estimate(saved: Path) -> None:
    assert load_tokenizer("").estimated
    assert load_tokenizer("").identity()["estimated"] is True
    assert not load_tokenizer(str(saved)).estimated


class TestEstimate:
    def count(self, *texts: str | None) -> list[int]:
        return EstimateTokenizer().count(pa.array(texts, pa.large_string())).tolist()

    def test_known_counts(self) -> None:
        """Tokens that the vocabulary it was fitted to really gives."""
        english = "The quick brown fox jumps over the lazy dog, and then it runs away from the angry farmer."
        chinese = "人工智能正在改变我们的生活方式，越来越多的企业开始使用大型语言模型来提高工作效率。"
        code = "def add(a, b):\n    return a + b\n\n\nprint(add(1, 2))\n"
        assert self.count(english, chinese, code) == pytest.approx([20, 26, 22], rel=0.3)

    def test_empty_texts_have_no_tokens_and_others_at_least_one(self) -> None:
        assert self.count("", None, " ", "a") == [0, 0, 1, 1]

    def test_special_strings_are_ordinary_text(self) -> None:
        [special, same_shape] = self.count("<|endoftext|>", "<|wordoftext|>")
        assert special == same_shape > 1

    @given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.integers(0, 8))
    def test_a_count_is_the_texts_own(self, texts: list[str], start: int) -> None:
        column = pa.array(texts, pa.large_string())
        alone = [self.count(t)[0] for t in texts]
        assert EstimateTokenizer().count(column).tolist() == alone
        assert EstimateTokenizer().count(column.slice(start)).tolist() == alone[start:]
