"""What every state database must do. Subclasses supply ``url``: a fresh database with the schema in place."""

from __future__ import annotations

from tests.state.contract_claims import ClaimsContract
from tests.state.contract_commits import CommitsContract
from tests.state.contract_days import DaysContract
from tests.state.contract_deliveries import DeliveriesContract
from tests.state.contract_events import EventsContract
from tests.state.contract_glance import GlanceContract
from tests.state.contract_kept import KeptContract
from tests.state.contract_leases import LeasesContract
from tests.state.contract_outcomes import OutcomesContract
from tests.state.contract_overview import OverviewContract
from tests.state.contract_runs import RunsContract
from tests.state.contract_totals import TotalsContract


class StateStoreContract(
    RunsContract,
    ClaimsContract,
    CommitsContract,
    OutcomesContract,
    LeasesContract,
    DaysContract,
    KeptContract,
    TotalsContract,
    GlanceContract,
    OverviewContract,
    EventsContract,
    DeliveriesContract,
):
    """The whole contract."""
