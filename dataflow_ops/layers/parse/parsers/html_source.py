"""What every HTML parser needs first: decoding with the charset in meta, and what is broken in the markup."""

from __future__ import annotations

import re
from dataclasses import dataclass
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
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][\w:-]*)\b[^<>]*>")

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
    open_of: dict[str, int] = {}
    depth = deepest = 0
    for match in _TAG.finditer(visible):
        name = match.group(2).lower()
        if name in _NO_END:
            continue
        if match.group(1):
            open_of[name] = open_of.get(name, 0) - 1
            depth -= 1
        elif not match.group().endswith("/>"):
            open_of[name] = open_of.get(name, 0) + 1
            depth += 1
            deepest = max(deepest, depth)
    return cut or any(n > 0 for n in open_of.values()), deepest
