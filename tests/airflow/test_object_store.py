"""A connection of Airflow's as the way into object storage."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dataflow_ops.airflow.object_store import use_connection
from dataflow_ops.clients.s3 import access_from_environment, client_for
from dataflow_ops.errors import ConfigError
from dataflow_ops.storage.opening import open_store, root_of
from tests.airflow.samples_hand import Samples
from tests.storage.s3_server import KEY, SECRET, S3Server, moto, moto_url  # noqa: F401

pytestmark = [pytest.mark.airflow, pytest.mark.xdist_group("airflow-operators")]
EXTRA = {"endpoint_url": "http://minio:9000", "region_name": "eu-central-1", "path_style": True}


def named(monkeypatch: pytest.MonkeyPatch, **fields: object) -> None:
    """A connection ``corpus_store`` with these fields."""
    monkeypatch.setenv("AIRFLOW_CONN_CORPUS_STORE", json.dumps({"conn_type": "aws", **fields}))


def test_it_becomes_what_the_rest_of_the_program_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, login="the-key", password="the-secret", extra={**EXTRA, "aws_session_token": "t"})
    own = {"DATAFLOW_S3_CONN_ID": "corpus_store", "AWS_ACCESS_KEY_ID": "another", "HOME": "/h"}
    use_connection(own)
    assert own == {
        "DATAFLOW_S3_CONN_ID": "corpus_store",
        "HOME": "/h",
        "AWS_ACCESS_KEY_ID": "the-key",
        "AWS_SECRET_ACCESS_KEY": "the-secret",
        "AWS_SESSION_TOKEN": "t",
        "DATAFLOW_S3_ENDPOINT": "http://minio:9000",
        "DATAFLOW_S3_REGION": "eu-central-1",
        "DATAFLOW_S3_PATH_STYLE": "true",
    }
    access = access_from_environment(own)
    assert (access.endpoint, access.region, access.path_style) == ("http://minio:9000", "eu-central-1", True)


def test_a_client_of_the_process_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "DATAFLOW_S3_ENDPOINT", "DATAFLOW_S3_REGION"):
        monkeypatch.setenv(name, "http://to-be-replaced")
    monkeypatch.setenv("DATAFLOW_S3_PATH_STYLE", "false")
    monkeypatch.setenv("DATAFLOW_S3_CONN_ID", "corpus_store")
    named(monkeypatch, login="key-of-this-test", password="s", extra=EXTRA)
    use_connection()
    client = client_for(access_from_environment(os.environ))
    assert client.meta.endpoint_url == "http://minio:9000"
    url = client.generate_presigned_url("get_object", Params={"Bucket": "b", "Key": "k"})
    assert url.startswith("http://minio:9000/b/k?")
    assert "key-of-this-test" in url


def test_a_role_of_the_instance_needs_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, extra={"region_name": "eu-west-1"})
    own = {"DATAFLOW_S3_CONN_ID": "corpus_store"}
    use_connection(own)
    assert own == {"DATAFLOW_S3_CONN_ID": "corpus_store", "DATAFLOW_S3_REGION": "eu-west-1"}


def test_nothing_is_asked_where_none_is_named() -> None:
    own = {"AWS_ACCESS_KEY_ID": "mine"}
    use_connection(own)
    assert own == {"AWS_ACCESS_KEY_ID": "mine"}


def test_samples_are_exported_by_way_of_it(
    moto: S3Server,  # noqa: F811
    moto_url: str,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in (*moto.variables(), "DATAFLOW_S3_REGION", "DATAFLOW_S3_PATH_STYLE"):
        monkeypatch.setenv(name, "to be put back as it was")
        monkeypatch.delenv(name)
    monkeypatch.setenv("DATAFLOW_ROOT", moto_url)
    monkeypatch.setenv("DATAFLOW_S3_CONN_ID", "corpus_store")
    named(monkeypatch, login=KEY, password=SECRET, extra={**EXTRA, "endpoint_url": moto.endpoint})
    samples = Samples(tmp_path)
    samples.file("one.jsonl", 3)
    left = samples.run(files=["one.jsonl"], clean=False).all()
    store = open_store(root_of(moto_url))
    assert any(blob.uri.endswith("manifest.json") for blob in store.list(left["export"]["folder"]))


def test_half_of_the_credentials_and_no_connection_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    named(monkeypatch, login="the-key")
    with pytest.raises(ConfigError, match="a login alone") as told:
        use_connection({"DATAFLOW_S3_CONN_ID": "corpus_store"})
    assert "the-key" not in str(told.value)
    with pytest.raises(ConfigError, match="'nowhere'"):
        use_connection({"DATAFLOW_S3_CONN_ID": "nowhere"})
