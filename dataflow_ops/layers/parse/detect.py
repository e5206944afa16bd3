"""Guesses the encoding of text that declares none: decode with each candidate, look how it reads.

A general detector needs long text; here the candidates are few, so short text suffices: each strict
decoding is scored by how common its characters are and how they sit beside each other. Own tables
instead of a library, so that a library upgrade never changes stored text.
"""

from __future__ import annotations

import codecs
import re
from typing import Final

SAMPLE: Final = 1536
"""Bytes or characters judged, after long runs of ASCII (markup, scripts) were left out."""
_WITHIN: Final = 1 << 20
"""Bytes or characters of the document from which they are taken."""
_ASCII_RUN: Final = re.compile(r"(?<=[\x00-\x7f])[\x00-\x7f]{6,}(?=[\x00-\x7f])")
_ASCII_BYTES: Final = re.compile(rb"(?<=[\x00-\x7f])[\x00-\x7f]{6,}(?=[\x00-\x7f])")
# The first byte of a run stays: it may be the second half of a character in Big5, GBK or Shift_JIS.
MIN_SCORE: Final = 0.25
"""Below this the best reading is no text. Wrong readings of the test matrix stay below 0.2."""
CLEAR: Final = 0.5
"""From here on a declared encoding is believed without asking the detector."""
BETTER: Final = 0.25
"""By how much the detector's reading must beat a doubtful declared one."""
MIN_DECLARED: Final = -0.4
"""Below this a declared encoding is not used at all: it gives no text."""

_CANDIDATES: Final = (
    "gb18030",
    "big5",
    "cp932",
    "euc_jp",
    "cp949",
    "cp1251",
    "koi8_r",
    "cp1252",
    "cp1250",
    "cp1253",
    "cp1255",
    "cp1256",
    "cp874",
)
"""In order of preference: an earlier one wins a tie."""

_COMMON_HAN: Final = frozenset(
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然"
    "家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机"
    "十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应向头文体政美相见被利什二等产或新己制身果加西月"
    "话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活更别打女变四"
    "總何電數安少報才結反受目太量再感建務做接必場件計管期市直資命山金指許統區保至隊形社便空決治展馬科司五基眼書非則聽"
    "這個們來為國說時會對過發後裡種經現當沒動還進樣開從實軍無與長機業將兩間問應頭體見產話給門東聲員論處義幾認條氣題變"
    "见报告记录网页新闻首页关于联系版权所有请输入用户登录水库风色每早沿走线面图表示数据系统文件设置使用程序命令参数"
    "分本日年月大人出生行自会社者事間時見語文書込取入手使用思言今私彼何方地学校国東京部合同定対気全体前後高新小中"
)
_USUAL_HAN: Final = frozenset(
    "".join(
        bytes((high, low)).decode(codec, "ignore")
        for codec, highs, lows in (
            ("gb2312", range(0xB0, 0xD8), range(0xA1, 0xFF)),
            ("big5", range(0xA4, 0xC7), (*range(0x40, 0x7F), *range(0xA1, 0xFF))),
        )
        for high in highs
        for low in lows
    )
)
"""Level 1 of GB 2312 (3,755 characters) and of Big5 (5,401): those in everyday use."""
_COMMON_HANGUL: Final = frozenset(
    "이다는에의가을고로하한지사기아도자리서정그대나어있를해것시인들은과일보수부전주상장스원라제유조신구성경동"
    "오여우만면비관국무위게적치마물안화으까했었습니요되된될할함합함며미바방백번소속실안업연용음저매때데드등러"
)
_TYPOGRAPHIC: Final = frozenset("’‘“”„–—…«»°€·§©®")
_COMMON_LATIN: Final = frozenset("éèàùçêâîôûëïüöäßñáíóúãõåøÉÈÀÇÊÜÖÄÑÁÍÓÚÅØ")
_EAST_LATIN: Final = frozenset("ąćęłńśźżčďěňřšťůžőűăâîșțýÁČĎÉĚÍŇÓŘŠŤÚŮÝŽĄĆĘŁŃŚŹŻ")


_ALPHABETS: Final = (
    (0x0370, 0x0400, frozenset("αοιεητσνρκπςλμυάέήίόύώ")),
    (0x0400, 0x0460, frozenset("оеаинтсрвлкмдпуяыьі")),
    (0x0590, 0x0600, frozenset("יוהלאמתרבשנ")),
    (0x0600, 0x0700, frozenset("اليموتنربعدفةأ")),
    (0x0E00, 0x0E80, frozenset("านรอกเงมยลวดทสตะปบคหแจพชขใไโผ่้ีัิ็์ุู")),
)
"""Code points (from, to) of an alphabet, and its most frequent letters."""


def detect(data: bytes) -> tuple[str, float]:
    """Python codec that reads ``data`` best, and how well; ``""`` where none reads. UTF-8 is not asked.

    Args:
        data: the document; what lies outside ASCII in its beginning is looked at.
    """
    wide = b"\x00" in data[:SAMPLE]
    sample = data[:_WITHIN] if wide else _ASCII_BYTES.sub(b" ", data[:_WITHIN])
    whole = len(sample) <= SAMPLE and len(data) <= _WITHIN
    sample = sample[:SAMPLE]
    candidates: tuple[str, ...] = _CANDIDATES
    if wide:
        candidates = ("utf-16-le", "utf-16-be")
    elif len(data) % 2 == 0 and len(sample) == min(len(data), SAMPLE):
        candidates = (*_CANDIDATES, "utf-16-le", "utf-16-be")
    best, best_score = "", MIN_SCORE
    for codec in candidates:
        try:
            text = codecs.getincrementaldecoder(codec)("strict").decode(sample, final=whole)
        except UnicodeDecodeError:
            continue
        score = _score(text, wide=codec.startswith("utf-16"))
        if score > best_score + 1e-9:
            best, best_score = codec, score
    return best, best_score if best else 0.0


def quality(text: str) -> float:
    """How well text reads, in [-3, 1]; 1 where there is nothing outside ASCII to judge by."""
    return _score(_ASCII_RUN.sub(" ", text[:_WITHIN])[:SAMPLE], wide=False)


def _score(text: str, wide: bool) -> float:
    """Mean plausibility per non-ASCII character (with ``wide`` per character) in [-3, 1]."""
    total, seen = 0.0, 0
    before, run = " ", 0
    for c in text:
        if c < "\x80":
            if wide:
                seen += 1
                total += 0.8 if c >= " " or c in "\t\n\r" else -3.0
            elif c < " " and c not in "\t\n\r\x0c\x1b":
                seen += 1
                total -= 1.0
            run = 0
        else:
            run = run + 1 if "\xa0" <= c < "\u0180" else 0
            seen += 1
            total += _one(c, before, run)
        before = c
    return total / seen if seen else 1.0


def _one(c: str, before: str, run: int) -> float:
    """Plausibility of one non-ASCII character after ``before``; ``run``: accented Latin in a row."""
    n = ord(c)
    if n < 0xA0 or 0xE000 <= n < 0xF900 or n in (0xFFFD, 0xFFFE, 0xFFFF):
        return -3.0
    if c in _TYPOGRAPHIC:
        return 0.6
    if n < 0x180:
        if run > 2:
            return -1.0
        if c in "¿¡":
            return -0.7 if before.isalpha() else 0.7
        if c in "œæŒÆ":
            return 0.3
        if c in _COMMON_LATIN:
            return 0.9
        if c in _EAST_LATIN:
            return 0.7
        return -0.3
    for low, high, common in _ALPHABETS:
        if low <= n < high:
            return _letter(c, before, low, high, common)
    if 0x3040 <= n < 0x3100:
        return 1.0
    if 0x3000 <= n < 0x3020 or c in "，！？：；（）":
        return 0.9
    if 0x4E00 <= n < 0xA000:
        return 1.0 if c in _COMMON_HAN else 0.45 if c in _USUAL_HAN else 0.0
    if 0xAC00 <= n < 0xD7A4:
        return 1.0 if c in _COMMON_HANGUL else 0.2
    if 0xFF61 <= n < 0xFFA0:
        return -0.5
    if 0xFF01 <= n < 0xFF5F:
        return 0.4
    return -0.6


def _letter(c: str, before: str, low: int, high: int, common: frozenset[str]) -> float:
    """Plausibility of a letter of an alphabet: words don't mix scripts, nor capitals after small letters."""
    if before.isascii() and before.isalpha():
        return -1.0
    inside = low <= ord(before) < high
    if c.isupper():
        return 0.5 if not inside or before.isupper() else -1.0
    if c in common:
        return 0.9 if inside else 0.7
    return 0.4
