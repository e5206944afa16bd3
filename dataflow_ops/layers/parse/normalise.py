"""Control characters measured, then removed; CRLF to LF; NUL, surrogates and U+FFFD; NFC at most.

Works on UTF-8 bytes: C0 control characters are single bytes there, so counting and deleting them is one
pass of ``bytes.translate``, and most documents come out untouched.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

VERSION: Final = 1

_C0: Final = bytes(b for b in [*range(0x20), 0x7F] if b not in b"\t\n\r")
_C1: Final = re.compile(rb"\xc2[\x80-\x9f]")
_SURROGATES: Final = re.compile("[\ud800-\udfff]")
_REPLACEMENT: Final = "\ufffd".encode()


@dataclass(frozen=True, slots=True)
class TextRules:
    """The settings that shape stored text.

    Attributes:
        nfc: compose to NFC; never NFKC, which would turn m² into m2.
        lower_case: store lower case.
        remove_control: remove control characters (NUL is removed in any case: databases refuse it).
    """

    nfc: bool = True
    lower_case: bool = False
    remove_control: bool = True


@dataclass(frozen=True, slots=True)
class Normalised:
    """Text as it is stored, with what was measured before anything was removed.

    Attributes:
        text: the stored text.
        raw_chars: characters before control characters were removed.
        control_chars: of them C0 without tab, LF and CR, DEL, and C1 (Unicode category Cc).
        replacement_chars: U+FFFD in the stored text.
        repairs: ``nul``, ``surrogate``.
    """

    text: str
    raw_chars: int
    control_chars: int
    replacement_chars: int
    repairs: tuple[str, ...]


def normalise(text: str, rules: TextRules) -> Normalised:
    """Bring one text into the form that is stored."""
    raw_chars = len(text)
    repairs: tuple[str, ...] = ()
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        data = _SURROGATES.sub("\ufffd", text).encode("utf-8")
        repairs = ("surrogate",)
    original = data
    cleaned = data.translate(None, _C0)
    control = len(data) - len(cleaned)
    if control and b"\x00" in data:
        repairs = ("nul", *repairs)
    if b"\xc2" in cleaned:
        cleaned, c1 = _C1.subn(b"", cleaned)
        control += c1
    if rules.remove_control:
        data = cleaned
    elif b"\x00" in data:
        data = data.translate(None, b"\x00")
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n")
    if data is not original or repairs:
        text = data.decode("utf-8")
    if not text.isascii() and rules.nfc and not unicodedata.is_normalized("NFC", text):
        text = unicodedata.normalize("NFC", text)
    if rules.lower_case:
        text = text.lower()
    return Normalised(text, raw_chars, control, data.count(_REPLACEMENT), repairs)


def clean_string(value: str) -> tuple[str, tuple[str, ...]]:
    """A string for metadata: no NUL, no lone surrogates; with the marks of what was repaired."""
    repairs: tuple[str, ...] = ()
    if "\x00" in value:
        value, repairs = value.replace("\x00", ""), ("nul",)
    if not value.isascii() and _SURROGATES.search(value):
        value, repairs = _SURROGATES.sub("\ufffd", value), (*repairs, "surrogate")
    return value, repairs
