"""What other DAGs start on."""

import pytest

pytestmark = pytest.mark.airflow


def test_whoever_writes_the_address_alone_means_the_same_asset() -> None:
    from airflow.sdk import Asset

    from dataflow_ops.airflow.assets import asset_of

    theirs, ours = Asset("dataflow://web"), asset_of("web")
    assert (theirs.name, theirs.uri) == (ours.name, ours.uri)
