"""Routes for looking at samples, deleting and restoring them, and uploading files of them.

A data set of samples has the rights of the DAGs of its name, as one of documents has.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from dataflow_ops.console.place import NotThere
from dataflow_ops.console.said import fault
from dataflow_ops.errors import ConfigError
from dataflow_ops.samples import browse, uploading
from dataflow_ops.samples.deleting import delete_or_restore
from dataflow_ops.samples.importing import plan_import
from dataflow_ops.state.samples.query import Filter
from dataflow_ops.state.samples.store import SampleStore
from dataflow_ops.state.samples.uploads import Upload
from dataflow_ui.audit_log import acts
from dataflow_ui.house import PlaceDep
from dataflow_ui.rights import NoRight, Subject, full_dag, may, needs
from dataflow_ui.sample_house import StoreDep

router = APIRouter(prefix="/api/samples")

_READ = Depends(needs("read"))
_Count = Field(ge=0, lt=1 << 31)
_Wide = Field(ge=0, lt=1 << 63)
"""An id of a turn, or a place in a file."""
_Behind = Field(ge=-1, lt=1 << 31)
_Most = Field(ge=1, le=500)
_Name = Annotated[str, Field(max_length=300)]


class Wanted(BaseModel):
    """Which turns, or whose dialogues, are meant."""

    dataset: _Name
    file: list[_Name] = []
    role: list[_Name] = []
    status: list[_Name] = []
    rule: _Name | None = None
    contains: str = Field(default="", max_length=4000)
    shortest: Annotated[int, _Count] | None = None
    longest: Annotated[int, _Count] | None = None
    record: Annotated[list[Annotated[int, _Count]], Field(max_length=1000)] = []
    deleted: bool | None = False

    def filter(self, store: SampleStore, *, ready: bool = False) -> Filter:
        """The filter, with the files that are meant."""
        files = browse.meant_files(store, self.dataset, self.file, ready=ready)
        return Filter(
            files=tuple(f.id for f in files),
            roles=tuple(self.role),
            statuses=tuple(self.status),
            rule=self.rule,
            contains=self.contains,
            shortest=self.shortest,
            longest=self.longest,
            records=tuple(self.record),
            deleted=self.deleted,
        )


class Page(Wanted):
    """A page of them."""

    after: Annotated[int, _Wide] | None = None
    limit: Annotated[int, _Most] = 50


class Announced(BaseModel):
    """A file that is to come."""

    dataset: _Name
    name: _Name
    size: Annotated[int, Field(ge=1, lt=1 << 50)]
    sha256: str | None = None


class Named(BaseModel):
    """An upload of a data set; the format of its records where they don't tell."""

    dataset: _Name
    upload: _Name
    format: str | None = None


def _text(user: Any, dataset: str) -> bool:
    return may(user, "text", full_dag(dataset))


def _allowed(user: Any, wanted: Wanted) -> bool:
    """Whether the user may read texts; looking for one by its words is reading it.

    Raises:
        NoRight: they look for a text and may not.
    """
    with_text = _text(user, wanted.dataset)
    if wanted.contains and not with_text:
        raise fault(NoRight, "no_right", rights="create", where=full_dag(wanted.dataset))
    return with_text


@router.get("/files", dependencies=[_READ])
def files(store: StoreDep, dataset: str) -> dict[str, Any]:
    """Files of a data set."""
    return {"files": browse.file_rows(store.sample_files(dataset))}


@router.get("/turns", dependencies=[_READ])
def turns(store: StoreDep, user: GetUserDep, wanted: Annotated[Page, Query()]) -> dict[str, Any]:
    """A page of turns; their texts for those who may read them."""
    with_text = _allowed(user, wanted)
    return browse.turn_rows(store, wanted.filter(store), wanted.after, wanted.limit, with_text=with_text)


@router.get("/stats", dependencies=[_READ])
def stats(store: StoreDep, user: GetUserDep, wanted: Annotated[Wanted, Query()]) -> dict[str, Any]:
    """Sums by file, role, status and length."""
    _allowed(user, wanted)
    return browse.sums(store, wanted.filter(store))


@router.get("/dialogue", dependencies=[_READ])
def dialogue(
    store: StoreDep, user: GetUserDep, dataset: str, file: str, record: Annotated[int, _Count]
) -> dict[str, Any]:
    """One dialogue, whole."""
    (named,) = browse.meant_files(store, dataset, [file])
    return browse.whole_dialogue(store, named, record, with_text=_text(user, dataset))


@router.get("/history", dependencies=[_READ])
def history(store: StoreDep, user: GetUserDep, dataset: str, turn: Annotated[int, _Wide]) -> dict[str, Any]:
    """What was changed in a turn, by whom."""
    known = store.turn(turn)
    if known is None or store.sample_file(known["dataset_file_id"]).dataset != dataset:
        raise NotThere(f"data set {dataset!r} has no turn {turn}")
    return {"changes": browse.history(store, turn, with_text=_text(user, dataset))}


@router.get("/letters", dependencies=[_READ])
def letters(
    store: StoreDep,
    user: GetUserDep,
    dataset: str,
    file: str = "",
    after: Annotated[int, _Behind] = -1,
    limit: Annotated[int, _Most] = 50,
) -> dict[str, Any]:
    """Records that were refused; of one file page by page, behind record ``after``."""
    named = browse.meant_files(store, dataset, [file] if file else [])
    ids = [one.id for one in named]
    found = store.sample_letters(ids, limit, (ids[0], after) if file else None)
    return {
        "by_error": store.letters_by_error(ids),
        "letters": browse.letter_rows(found, with_text=_text(user, dataset)),
    }


@router.post("/delete", dependencies=[Depends(acts("samples.delete"))])
def delete(store: StoreDep, user: GetUserDep, wanted: Wanted) -> dict[str, Any]:
    """Delete every dialogue that has a turn which is meant; softly, so that it can be restored."""
    return _change(store, user, wanted, restore=False)


@router.post("/restore", dependencies=[Depends(acts("samples.restore"))])
def restore(store: StoreDep, user: GetUserDep, wanted: Wanted) -> dict[str, Any]:
    """Restore every dialogue that has a deleted turn which is meant."""
    return _change(store, user, wanted, restore=True)


def _change(store: SampleStore, user: Any, wanted: Wanted, *, restore: bool) -> dict[str, Any]:
    _allowed(user, wanted)
    only = wanted.filter(store, ready=True)
    task = delete_or_restore(store, wanted.dataset, only, user.get_name(), restore=restore)
    return {"task": task.task_id, "state": task.state, "counts": task.counts}


@router.get("/uploads", dependencies=[_READ])
def uploads(store: StoreDep, dataset: str) -> dict[str, Any]:
    """Uploads that are under way."""
    return {"uploads": [asdict(one) for one in store.uploads(dataset)]}


@router.get("/upload", dependencies=[_READ])
def upload(store: StoreDep, dataset: str, upload: str) -> dict[str, Any]:
    """How far an upload is: ``received`` is where the next part begins."""
    return asdict(_of(store, dataset, upload))


@router.post("/uploads")
def announce(
    store: StoreDep,
    user: GetUserDep,
    announced: Announced,
    _: Annotated[Subject, Depends(acts("samples.uploads"))],
) -> dict[str, Any]:
    """Begin an upload; parts go to ``PUT /upload``."""
    made = uploading.begin(
        store, announced.dataset, announced.name, announced.size, announced.sha256, user.get_name()
    )
    return {**asdict(made), "most": uploading.MAX_PART}


@router.put("/upload", dependencies=[Depends(needs("act"))])
async def part(
    request: Request,
    store: StoreDep,
    place: PlaceDep,
    dataset: str,
    upload: str,
    offset: Annotated[int, _Wide],
) -> dict[str, Any]:
    """The bytes of an upload from ``offset`` on, as they are (application/octet-stream)."""
    data = bytearray()
    async for block in request.stream():
        data += block
        if len(data) > uploading.MAX_PART:
            raise HTTPException(413, f"a part has at most {uploading.MAX_PART >> 20} MB")

    def add() -> Upload:
        _of(store, dataset, upload)
        return uploading.add_part(store, _folder(place), upload, offset, bytes(data))

    return asdict(await run_in_threadpool(add))


@router.post("/upload/finish", dependencies=[Depends(acts("samples.upload.finish"))])
def finish(store: StoreDep, place: PlaceDep, user: GetUserDep, named: Named) -> dict[str, Any]:
    """Check the bytes, and ask for the task that imports them: ``dataflow samples resume TASK`` runs it."""
    _of(store, named.dataset, named.upload)
    path = str(uploading.finish(store, _folder(place), named.upload))
    wanted = plan_import(store, named.dataset, [path], user.get_name(), named.format)
    return {
        "path": path,
        "task": wanted.task_id or next(iter(wanted.resumed), None),
        "there": bool(wanted.there),
    }


@router.post("/upload/abort", dependencies=[Depends(acts("samples.upload.abort"))])
def abort(store: StoreDep, place: PlaceDep, named: Named) -> dict[str, Any]:
    """Give an upload up, and its bytes."""
    _of(store, named.dataset, named.upload)
    uploading.abort(store, _folder(place), named.upload)
    return {"ok": True}


def _of(store: SampleStore, dataset: str, upload_id: str) -> Upload:
    """An upload of the data set on which the user has the right."""
    found = store.upload(upload_id)
    if found.dataset != dataset:
        raise ConfigError(f"there is no upload {upload_id}: begin a new one")
    return found


def _folder(place: Any) -> Path:
    root: Path = place.home.root if isinstance(place.home.root, Path) else place.home.path
    return root / uploading.FOLDER
