from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from dataflow_ops.errors import ConfigError
from dataflow_ops.stack.keys import MAKERS, load_keys, make_keys
from dataflow_ops.stack.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.make()
    return layout


def test_secrets_are_made_once_and_only_for_their_owner(layout: Layout) -> None:
    before = os.umask(0)
    try:
        first = load_keys(layout)
    finally:
        os.umask(before)
    assert layout.secrets.stat().st_mode & 0o777 == 0o600
    assert load_keys(layout) == first
    assert [path.name for path in layout.folder.glob(".*")] == []


def test_two_stacks_have_nothing_in_common() -> None:
    one, other = make_keys(), make_keys()
    assert all(getattr(one, name) != getattr(other, name) for name in MAKERS)


def test_a_key_that_a_newer_release_needs_is_added_and_the_others_stay(layout: Layout) -> None:
    first = load_keys(layout)
    known = json.loads(layout.secrets.read_text(encoding="utf-8"))
    del known["s3_secret_key"]
    layout.secrets.write_text(json.dumps(known), encoding="utf-8")
    second = load_keys(layout)
    assert second.s3_secret_key
    assert second.s3_secret_key != first.s3_secret_key
    assert second.postgres_password == first.postgres_password
    assert load_keys(layout) == second


def test_a_file_that_others_may_read_is_refused(layout: Layout) -> None:
    load_keys(layout)
    layout.secrets.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        load_keys(layout)


def test_a_damaged_file_is_told_and_kept(layout: Layout) -> None:
    layout.secrets.write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="damaged"):
        load_keys(layout)
    assert layout.secrets.read_text(encoding="utf-8") == "{"


def test_they_do_not_show_in_a_traceback() -> None:
    keys = make_keys()
    assert keys.postgres_password not in repr(keys)


def test_the_fernet_key_is_one() -> None:
    keys = make_keys()
    cipher = Fernet(keys.fernet_key)
    assert cipher.decrypt(cipher.encrypt(b"x")) == b"x"
