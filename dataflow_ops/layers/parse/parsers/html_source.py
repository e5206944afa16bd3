"""What every HTML parser needs first: decoding with the charset in meta, and what is broken in the markup."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from dataflow_ops.layers.parse.encoding import decode
from dataflow_ops.layers.parse.parsers.base import Hints

_META: Final = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.\-]{2,40})|<\?xml[^>]{0,200}?encoding\s*=\s*[\"']"
    rb"([A-Za-z0-9_:.\-]{2,40})",
    re.IGNORECASE,
)
_META_WITHIN: Final = 4096
_SILENT: Final = re.compile(
    r"<!--.*?-->|<(script|style|textarea)\b[^>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL
)
_SELF_CLOSED: Final = re.compile(r"<[a-zA-Z][^<>]*/>")
_TAG: Final = re.compile(r"<(/?[a-zA-Z][\w:-]*)")

_NO_END: Final = frozenset(
    "area base br col embed hr img input link meta param source track wbr basefont frame keygen "
    # end tags that HTML lets authors leave out (https://html.spec.whatwg.org/#optional-tags)
    "html head body p li dt dd option optgroup thead tbody tfoot tr td th colgroup caption rp rt "
    # markup of other languages inside, self-closed or not
    "path circle rect line polyline polygon ellipse use stop g svg image".split()
)


@dataclass(frozen=True, slots=True)
class Markup:
    """Decoded HTML and what a scan over its tags tells.

    Attributes:
        text: the markup.
        encoding: codec it was read with.
        broken: cut inside a tag, or an element left open whose end tag may not be left out.
        depth: deepest nesting of elements that need an end tag.
    """

    text: str
    encoding: str
    broken: bool
    depth: int


def read_markup(data: bytes, hints: Hints) -> Markup:
    """Decode a page and look at its tags.

    Raises:
        UndecodableText: no encoding gives readable text.
    """
    declared = [hints.charset] if hints.charset else []
    meta = _META.search(data, 0, _META_WITHIN)
    if meta:
        label = (meta.group(1) or meta.group(2)).decode("ascii").lower()
        # A meta element that could be read at all is not in UTF-16 (WHATWG, prescan).
        declared.append("utf-8" if label.startswith(("utf-16", "utf16")) else label)
    text, encoding = decode(data, tuple(declared))
    broken, depth = _scan(text)
    return Markup(text, encoding, broken, depth)


def _scan(text: str) -> tuple[bool, int]:
    visible = _SILENT.sub("", text)
    cut = visible.rfind("<") > visible.rfind(">")
    if "/>" in visible:
        visible = _SELF_CLOSED.sub("", visible)
    tags = _TAG.findall(visible)
    numbers = Counter(tags)
    step = {tag: _step(tag) for tag in numbers}
    open_of: dict[str, int] = {}
    for tag, n in numbers.items():
        name = tag.lstrip("/").lower()
        open_of[name] = open_of.get(name, 0) + n * step[tag]
    deepest = max(accumulate(map(step.__getitem__, tags)), default=0)
    return cut or any(n > 0 for n in open_of.values()), deepest


def _step(tag: str) -> int:
    """What a tag does to the depth; 0 for elements that need no end tag."""
    closing = tag.startswith("/")
    if tag.lstrip("/").lower() in _NO_END:
        return 0
    return -1 if closing else 1
