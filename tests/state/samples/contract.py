"""What every database must do for samples. Subclasses supply ``url``: a fresh database with the schema."""

from __future__ import annotations

from tests.state.samples.contract_generations import GenerationsContract
from tests.state.samples.contract_query import QueryContract
from tests.state.samples.contract_tasks import TasksContract


class SampleStoreContract(TasksContract, QueryContract, GenerationsContract):
    """The whole contract."""
