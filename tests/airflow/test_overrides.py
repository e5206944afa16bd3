"""What the trigger form may not change."""

import pytest

from dataflow_ops.errors import ConfigError

pytestmark = pytest.mark.airflow


@pytest.mark.parametrize(
    "line",
    [
        "dataset.id=other",
        " dataset = {id: other}",
        "sources=[{kind: files, path: /etc}]",
        "sources.0.path=/etc",
    ],
)
def test_what_a_job_is_and_what_it_reads(line: str) -> None:
    from dataflow_ops.airflow.operators import refuse_foreign

    with pytest.raises(ConfigError, match="change the job file"):
        refuse_foreign(["mixing.seed=7", line])


def test_all_else_may_be() -> None:
    from dataflow_ops.airflow.operators import refuse_foreign

    refuse_foreign(["mixing.seed=7", "dedup.near=false", "output.shards = 2"])
