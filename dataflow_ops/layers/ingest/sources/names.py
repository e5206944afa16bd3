"""File names as text: any bytes, reversibly.

File systems allow names that are not UTF-8. Python shows such bytes as lone surrogates, which neither
JSON nor a database stores. They are written ``%FF``, and ``%`` itself ``%25``.
"""

from __future__ import annotations

import re

_INVALID = re.compile("[%\udc80-\udcff]")
_ESCAPE = re.compile("%([0-9A-F]{2})")


def escape(name: str) -> str:
    """A name from the file system as text that any store takes."""
    return _INVALID.sub(lambda m: "%25" if m[0] == "%" else f"%{ord(m[0]) - 0xDC00:02X}", name)


def unescape(path: str) -> str:
    """The name to hand to the file system: inverse of :func:`escape`."""
    return _ESCAPE.sub(lambda m: "%" if m[1] == "25" else chr(0xDC00 + int(m[1], 16)), path)
