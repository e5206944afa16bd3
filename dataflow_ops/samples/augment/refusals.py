"""Whether an answer is the boilerplate of a refusal, in English or Chinese, rather than an answer.

Only the beginning is looked at: an answer may well speak of what cannot be done further down.
"""

from __future__ import annotations

import re
from typing import Final

HEAD: Final = 160
"""Characters that are looked at."""

_CANT: Final = r"(?:can(?:no|')?t|can\ not|(?:am|'m)\ (?:not\ able|unable)\ to|won't|will\ not)"
_DO: Final = (
    r"(?:help|assist|comply|fulfil|fulfill|complete|provide|answer|do|support|engage|participate|generate"
    r"|create|write|discuss|share|offer|continue|process|respond|rewrite|translate|produce)\b"
)
_SORRY: Final = (
    r"(?:(?:i'm|i\ am|we're|we\ are)\ (?:(?:very|so|really)\ )?sorry"
    r"|sorry|(?:my\ )?apologies|i\ apologi[sz]e|unfortunately)"
)
_AS_AI: Final = r"as\ an?\ (?:ai|artificial\ intelligence)\b[\w\ -]{0,40},?"
_ENGLISH: Final = re.compile(
    rf"""
    \W*(?:
        {_SORRY} [\s,.!:;—–-]+ (?:but\ |however,?\ )? (?:{_AS_AI}\ )?
          (?:i|we)\ ?{_CANT}\ (?:\w+\ ){{0,2}}? {_DO}
      | {_AS_AI}\ (?:i|we|my)\b
      | (?:i|we)\ ?{_CANT}\ (?:\w+\ )? (?:help|assist|comply|fulfil|fulfill|engage|support)\b
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_WO: Final = "(?:我|我们|我們|本助手)"
_BUNENG: Final = "(?:无法|無法|不能|不可以|没有办法|沒有辦法|没办法|不会|不便)"
_AI: Final = "(?:AI|人工智能|人工智慧|大?型?语言模型|大?型?語言模型|智能助手)"
_DUIBUQI: Final = "(?:抱歉|对不起|對不起|遗憾|遺憾|不好意思)"
_XIEZHU: Final = "(?:协助|協助|帮助|幫助|满足|滿足|提供|回答|完成|参与|參與|生成)"
_CHINESE: Final = re.compile(
    rf"""
    \W*(?:
        (?:非常|很|十分|真的)? {_DUIBUQI} [，,。.!！、\s]* (?:但是?|不过|不過)? (?:作为[^，,。]{{0,20}}[，,])?
          {_WO} (?:暂时|暫時|目前|现在|現在|还|還|并|並)? {_BUNENG}
      | (?:作为|作為|身为|身為|我是) (?:一个|一個|一名|一款)? {_AI}
          [^。！]{{0,30}}? [我，,] [^。！]{{0,12}}? (?:{_BUNENG}|没有|沒有|不应|不應)
      | {_WO} (?:无法|無法|不能) {_XIEZHU} (?:您|你|这|這|该|該|此|任何)
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)


def is_refusal(answer: str) -> bool:
    """Whether an answer begins with refusal boilerplate."""
    head = " ".join(answer[: 2 * HEAD].replace("’", "'").split())[:HEAD]
    return bool(_ENGLISH.match(head) or _CHINESE.match(head))
