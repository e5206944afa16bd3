"""Bytes to text. Order of trust: byte order mark, bytes that prove UTF-8, HTTP header, meta, detector.

A declared encoding that does not fit falls through to the next; labels mean what browsers take them for
(https://encoding.spec.whatwg.org/#names-and-labels: ``gb2312`` is read as GB 18030, ``iso-8859-1`` as
Windows-1252).
"""

from __future__ import annotations

import codecs
import re
from typing import Final

from dataflow_ops.errors import UndecodableText
from dataflow_ops.layers.parse.detect import BETTER, CLEAR, MIN_DECLARED, detect, quality

_BOMS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)

_ALIASES: Final = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "gb_2312-80": "gb18030",
    "chinese": "gb18030",
    "hz-gb-2312": "hz",
    "big5-hkscs": "big5hkscs",
    "cn-big5": "big5hkscs",
    "x-x-big5": "big5hkscs",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "ms_kanji": "cp932",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "ksc5601": "cp949",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-9": "cp1254",
    "iso-8859-11": "cp874",
    "tis-620": "cp874",
    "x-cp1251": "cp1251",
    "x-euc-jp": "euc_jp",
    "utf8": "utf-8",
    "unicode-1-1-utf-8": "utf-8",
    "utf-16": "utf-16-le",
    "unicode": "utf-16-le",
}

_MULTI_BYTE: Final = frozenset(
    {"gb18030", "big5hkscs", "cp932", "euc_jp", "cp949", "hz", "iso2022_jp", "utf-16-le", "utf-16-be"}
)

_KNOWN: Final = frozenset(
    "utf-8 utf-16-le utf-16-be utf-32 utf-32-le utf-32-be gb18030 big5hkscs cp932 euc_jp iso2022_jp cp949 hz "
    "cp866 koi8-r koi8-u mac-roman mac-cyrillic cp874 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 "
    "cp1257 cp1258 "
    "iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10 iso8859-13 iso8859-14 "
    "iso8859-15 iso8859-16".split()
)
"""Codecs that a document may declare: those of the web; Python's others (rot13, idna, …) are no charsets."""

_BINARY: Final = tuple(map(chr, (*range(9), *range(14, 27), *range(28, 32))))
"""Control characters that text hardly holds and binary data are full of."""

_HIGH_RUN: Final = re.compile(rb"[\xc2-\xf4][\x80-\xbf]{1,3}")

MAX_BAD_SHARE: Final = 0.02
"""U+FFFD per character outside ASCII up to which a document is still read in its declared encoding (or
UTF-8): one cut character must not turn a page into another language."""


def python_codec(label: str) -> str:
    """Python's codec for a charset label as found in headers and meta elements; ``""`` if unknown."""
    name = label.strip().strip("\"'").lower()
    name = _ALIASES.get(name, name)
    if not name or not name.isascii():
        return ""
    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        return ""
    codec = _ALIASES.get(info.name, info.name)
    return codec if codec in _KNOWN else ""


def decode(data: bytes, declared: tuple[str, ...] = ()) -> tuple[str, str]:
    """Text and the codec that gave it.

    Args:
        data: the document.
        declared: charset labels in order of trust (HTTP header, meta); wrong or unknown ones are passed by.

    Returns:
        ``(text, codec)``; the byte order mark is not part of the text. U+FFFD stands for the few bytes
        that did not fit (at most :data:`MAX_BAD_SHARE`); a rule of the filter judges how many are too many.

    Raises:
        UndecodableText: nothing gives readable text.
    """
    for bom, codec in _BOMS:
        if data.startswith(bom):
            text = _lenient(data[len(bom) :], codec)
            if text is None:
                raise UndecodableText(
                    f"starts with the byte order mark of {codec} but does not decode as such"
                )
            return text, codec
    if data.isascii() and b"\x00" not in data and b"\x1b" not in data and b"~{" not in data:
        return data.decode("ascii"), "utf-8"
    if b"\x1b$" in data and data.isascii() and (text := _strict(data, "iso2022_jp")) is not None:
        return text, "iso2022_jp"
    known = [codec for codec in map(python_codec, declared) if codec]
    proven = _strict(data, "utf-8")
    if proven is not None and b"\x00" not in data and _proves_utf8(data, known):
        return proven, "utf-8"
    doubtful: tuple[str, str, float] | None = None
    for codec in known:
        text = _lenient(data, codec)
        if text is None:
            continue
        score = quality(text)
        if score >= CLEAR:
            return text, codec
        doubtful = doubtful or (text, codec, score)
    wide = _wide(data)
    text = _lenient(data, wide) if wide else None
    if text is not None:
        return text, wide
    if proven is not None:
        return proven, "utf-8"
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    # Legacy encodings hold valid UTF-8 sequences by chance only, far fewer than invalid ones.
    if (good := _outside(text) - bad) >= 3 and good >= 2 * bad:
        return text, "utf-8"
    found, score = detect(data)
    if doubtful and (not found or score < max(CLEAR, doubtful[2] + BETTER)):
        if doubtful[2] >= MIN_DECLARED:
            return doubtful[:2]
        found = ""
    text = _lenient(data, found) if found else None
    if text is None:
        found = known[0] if known else "utf-8"
        text = _patched(data, found)
    if text is None:
        raise UndecodableText(f"no encoding reads as text (declared: {', '.join(declared) or 'none'})")
    return text, found


def _proves_utf8(data: bytes, known: list[str]) -> bool:
    """Whether valid UTF-8 outweighs the declared encoding.

    Accented text in a single-byte encoding is practically never valid UTF-8. Two Chinese characters in
    GBK can be; four in a row are not (each pair fits by chance about one time in seven).
    """
    if not known or known[0] == "utf-8":
        return True
    need = 4 if known[0] in _MULTI_BYTE else 1
    seen = 0
    for _ in _HIGH_RUN.finditer(data):
        seen += 1
        if seen >= need:
            return True
    return False


def _wide(data: bytes) -> str:
    """UTF-16 without a byte order mark, told by where the zero bytes stand; ``""`` if it is not."""
    sample = data[: 4096 & ~1]
    even, odd = sample[0::2].count(0), sample[1::2].count(0)
    if odd > 4 * even and odd * 20 > len(sample):
        return "utf-16-le"
    if even > 4 * odd and even * 20 > len(sample):
        return "utf-16-be"
    return ""


def _strict(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except (UnicodeDecodeError, LookupError):
        return None


def _lenient(data: bytes, codec: str) -> str | None:
    """Decode with U+FFFD for at most :data:`MAX_BAD_SHARE` of the characters outside ASCII, else None."""
    text = _strict(data, codec)
    if text is not None:
        return text
    text = data.decode(codec, "replace")
    bad = text.count("\ufffd")
    outside = _outside(text)
    # One more: a truncated transfer cuts a character of a short text too.
    return text if bad <= int(outside * MAX_BAD_SHARE) + (outside >= 8) else None


def _outside(text: str) -> int:
    """How many characters are outside ASCII."""
    return len(text) - len(text.encode("ascii", "ignore"))


def _patched(data: bytes, codec: str) -> str | None:
    """The last resort for text in mixed encodings: U+FFFD for at most :data:`MAX_BAD_SHARE` of all of it."""
    text = data.decode(codec, "replace")
    odd = text.count("\ufffd") + sum(map(text[:65536].count, _BINARY))
    return text if odd <= len(text) * MAX_BAD_SHARE else None
