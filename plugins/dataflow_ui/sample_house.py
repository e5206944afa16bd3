"""Samples as the routes ask for them: in the home's own database."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from dataflow_ops.console.sample_desk import SampleDesk
from dataflow_ops.console.sample_pace import Pace
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ui.house import PlaceDep


def store_of(place: PlaceDep) -> SampleStore:
    """For routes: ``store: StoreDep``."""
    return SampleStore.beside(place.state.db)


StoreDep = Annotated[SampleStore, Depends(store_of)]


def desk_of(request: Request, place: PlaceDep, store: StoreDep) -> SampleDesk:
    """For routes: ``desk: DeskDep``."""
    pace: Pace = request.app.state.pace
    return SampleDesk(place.home, store, pace)


DeskDep = Annotated[SampleDesk, Depends(desk_of)]
