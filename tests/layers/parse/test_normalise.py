from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataflow_ops.layers.parse.normalise import TextRules, clean_string, normalise

TEXTS = st.text(st.characters(exclude_categories=()), max_size=60) | st.text(
    st.sampled_from("a\r\n\t\x00\x07\x7f\x85\x9f\ufffd\ud800e\u0301水Ａ²"), max_size=40
)


@given(TEXTS, st.booleans(), st.booleans(), st.booleans())
def test_equal_to_the_plain_definition(text: str, nfc: bool, lower: bool, remove: bool) -> None:
    done = normalise(text, TextRules(nfc, lower, remove))
    safe = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    control = [c for c in safe if unicodedata.category(c) == "Cc" and c not in "\t\n\r"]
    kept = "".join(c for c in safe if c not in (control if remove else ["\x00"])).replace("\r\n", "\n")
    kept = unicodedata.normalize("NFC", kept) if nfc else kept
    assert done.text == (kept.lower() if lower else kept)
    assert (done.raw_chars, done.control_chars) == (len(text), len(control))
    assert done.replacement_chars == done.text.count("\ufffd")
    assert ("nul" in done.repairs) == ("\x00" in text)
    assert ("surrogate" in done.repairs) == (safe != text)


@pytest.mark.parametrize(
    "text",
    ["12 m² ½ ︰", "Ｆｕｌｌ　ｗｉｄｔｈ", "ﬁ ligature", "bidi \u202eabc\u202c", "zero\u200bwidth", "a\rb"],
)
def test_nothing_else_is_touched(text: str) -> None:
    assert normalise(text, TextRules()).text == text


@given(st.text(st.characters(exclude_categories=())))
def test_strings_of_metadata(text: str) -> None:
    cleaned, repairs = clean_string(text)
    cleaned.encode("utf-8")
    assert "\x00" not in cleaned
    assert bool(repairs) == (cleaned != text)
