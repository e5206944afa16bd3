"""What a file is, by its name and, where the name says nothing, by its first bytes.

Shared by ingest (which files to take, how large they are when unpacked) and parse (which parser, which
code language). Pure tables and functions; no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Codec = Literal["", "gz", "zst", "bz2", "xz"]

HTML: Final = "text/html"
XHTML: Final = "application/xhtml+xml"
PDF: Final = "application/pdf"
MARKDOWN: Final = "text/markdown"
TEXT: Final = "text/plain"
CODE: Final = "text/x-code"
JSONL: Final = "application/x-ndjson"
JSON: Final = "application/json"
PARQUET: Final = "application/vnd.apache.parquet"
WARC: Final = "application/warc"
ROWS: Final = "application/x-table-rows"
"""Rows of a database as fetch writes them: see :func:`dataflow_ops.layers.parse.readers.rows.read_rows`."""

CODECS: Final[dict[str, Codec]] = {".gz": "gz", ".zst": "zst", ".bz2": "bz2", ".xz": "xz"}

EXPANSION: Final[dict[Codec, int]] = {"": 1, "gz": 4, "zst": 4, "bz2": 5, "xz": 5}
"""Unpacked bytes for each stored byte, a fixed guess so that chunks don't depend on what is inside."""

PARQUET_EXPANSION: Final = 3

MEDIA_BY_EXTENSION: Final[dict[str, str]] = {
    ".html": HTML,
    ".htm": HTML,
    ".xhtml": XHTML,
    ".pdf": PDF,
    ".md": MARKDOWN,
    ".markdown": MARKDOWN,
    ".mdx": MARKDOWN,
    ".txt": TEXT,
    ".text": TEXT,
    ".rst": TEXT,
    ".adoc": TEXT,
    ".org": TEXT,
    ".tex": TEXT,
    ".log": TEXT,
    ".csv": TEXT,
    ".tsv": TEXT,
    ".jsonl": JSONL,
    ".ndjson": JSONL,
    ".json": JSON,
    ".parquet": PARQUET,
    ".pq": PARQUET,
    ".warc": WARC,
}

LANGUAGE_BY_EXTENSION: Final[dict[str, str]] = {
    ".py": "python",
    ".pyi": "python",
    ".pyx": "cython",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascript",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".vue": "vue",
    ".svelte": "svelte",
    ".java": "java",
    ".kt": "kotlin",
    ".kts": "kotlin",
    ".scala": "scala",
    ".groovy": "groovy",
    ".clj": "clojure",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".cu": "cuda",
    ".cs": "csharp",
    ".fs": "fsharp",
    ".go": "go",
    ".rs": "rust",
    ".rb": "ruby",
    ".php": "php",
    ".pl": "perl",
    ".pm": "perl",
    ".swift": "swift",
    ".m": "objective-c",
    ".mm": "objective-c",
    ".r": "r",
    ".jl": "julia",
    ".lua": "lua",
    ".dart": "dart",
    ".ex": "elixir",
    ".exs": "elixir",
    ".erl": "erlang",
    ".hs": "haskell",
    ".ml": "ocaml",
    ".mli": "ocaml",
    ".zig": "zig",
    ".nim": "nim",
    ".v": "verilog",
    ".sv": "verilog",
    ".vhd": "vhdl",
    ".f90": "fortran",
    ".f": "fortran",
    ".asm": "assembly",
    ".s": "assembly",
    ".sh": "shell",
    ".bash": "shell",
    ".zsh": "shell",
    ".ps1": "powershell",
    ".bat": "batch",
    ".sql": "sql",
    ".proto": "protobuf",
    ".graphql": "graphql",
    ".css": "css",
    ".scss": "scss",
    ".less": "less",
    ".xml": "xml",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".toml": "toml",
    ".ini": "ini",
    ".cfg": "ini",
    ".cmake": "cmake",
    ".gradle": "groovy",
    ".tf": "terraform",
    ".nix": "nix",
    ".sol": "solidity",
    ".ipynb": "jupyter",
    ".el": "emacs-lisp",
    ".lisp": "lisp",
    ".scm": "scheme",
    ".vim": "vim",
}

DATA_LANGUAGE: Final[dict[str, str]] = {".json": "json", ".jsonl": "json", ".ndjson": "json"}
"""Language of files that hold records in one place and stand as documents in another."""

LANGUAGE_BY_NAME: Final[dict[str, str]] = {
    "makefile": "make",
    "gnumakefile": "make",
    "dockerfile": "dockerfile",
    "cmakelists.txt": "cmake",
    "jenkinsfile": "groovy",
    "rakefile": "ruby",
    "gemfile": "ruby",
}

TEXT_BY_NAME: Final = frozenset({"readme", "license", "licence", "copying", "authors", "changelog", "notice"})

_MAGIC: Final[tuple[tuple[bytes, str], ...]] = (
    (b"%PDF-", PDF),
    (b"PAR1", PARQUET),
    (b"WARC/", WARC),
)

_CODEC_MAGIC: Final[tuple[tuple[bytes, Codec], ...]] = (
    (b"\x1f\x8b", "gz"),
    (b"\x28\xb5\x2f\xfd", "zst"),
    (b"BZh", "bz2"),
    (b"\xfd7zXZ\x00", "xz"),
)

_INTERPRETERS: Final = (
    (b"python", "python"),
    (b"node", "javascript"),
    (b"perl", "perl"),
    (b"ruby", "ruby"),
)


@dataclass(frozen=True, slots=True)
class Media:
    """What a name says.

    Attributes:
        media_type: one of this module's constants; ``""`` where the name says nothing.
        code_language: ``python``, …; ``""`` where it is not code. ``json`` also where the type says records:
            it counts when the file is read as one document.
        codec: compression around it, ``""`` for none.
    """

    media_type: str
    code_language: str = ""
    codec: Codec = ""


def media_of(path: str) -> Media:
    """Media type, code language and compression by the file's name (``a/b.jsonl.gz``: JSONL in gzip)."""
    name = path.rsplit("/", 1)[-1].lower()
    stem, dot, last = name.rpartition(".")
    codec = CODECS.get(dot + last, "") if stem else ""
    if codec:
        name = stem
        stem, dot, last = name.rpartition(".")
    extension = dot + last if stem else ""
    language = LANGUAGE_BY_NAME.get(name) or LANGUAGE_BY_EXTENSION.get(extension, "")
    if language:
        return Media(CODE, language, codec)
    if extension in MEDIA_BY_EXTENSION:
        return Media(MEDIA_BY_EXTENSION[extension], DATA_LANGUAGE.get(extension, ""), codec)
    return Media(TEXT if name in TEXT_BY_NAME else "", "", codec)


def sniff(head: bytes) -> Media:
    """Media type by a file's first bytes (a few hundred are enough), for names that say nothing.

    Returns:
        ``media_type`` is ``""`` for what looks like binary data.
    """
    for magic, codec in _CODEC_MAGIC:
        if head.startswith(magic):
            return Media("", "", codec)
    for magic, media_type in _MAGIC:
        if head.startswith(magic):
            return Media(media_type)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:256].lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return Media(HTML)
    utf16 = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    if not utf16 and b"\x00" in head:
        return Media("")
    if start.startswith(b"#!"):
        return Media(CODE, _interpreter(start))
    return Media(TEXT)


def unpacked_bytes(path: str, size: int) -> int:
    """Estimated size after decompression: stored bytes times the fixed factor of the codec."""
    media = media_of(path)
    factor = PARQUET_EXPANSION if media.media_type == PARQUET else EXPANSION[media.codec]
    return size * factor


def _interpreter(shebang: bytes) -> str:
    line = shebang.split(b"\n", 1)[0]
    for name, language in _INTERPRETERS:
        if name in line:
            return language
    return "shell" if line.rstrip().endswith(b"sh") else ""
