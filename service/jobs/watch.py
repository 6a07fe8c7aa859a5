"""One look at the database, twice a second, for all who follow jobs of one tenant.

Only what has changed since the look before is read whole and written down as an event, once for
all who follow that job. Between two looks neither a thread nor a connection is held.
"""

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from weakref import WeakValueDictionary

from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync
from sqlalchemy import Engine, select

from service.db.database import UNREACHABLE, Database
from service.jobs import job_parts
from service.jobs.records import JobRecord
from service.jobs.schemas import JobRead, describe
from service.keys import repository as keys

POLL_SECONDS = 0.5
# All of a job that changes and is shown, by way of what changes with it.
_CHANGING = (
    JobRecord.state,
    JobRecord.is_split,
    JobRecord.attempt,
    JobRecord.started_at,
    JobRecord.heartbeat_at,
    JobRecord.progress_at,
    JobRecord.cancel_requested_at,
    JobRecord.finished_at,
)


@dataclass(frozen=True)
class JobSnapshot:
    """A job as one look has found it, as the event that tells of it."""

    # What the next look is compared with.
    columns: tuple[object, ...]
    event_id: str
    event: bytes
    is_terminal: bool


class _Found(NamedTuple):
    """What one look has found."""

    jobs: Mapping[str, JobSnapshot]
    working_keys: Collection[str]


_NOTHING = _Found({}, frozenset())


@dataclass
class _Round:
    """Those for whom one look is made."""

    job_ids: set[str] = field(default_factory=set)
    key_ids: set[str] = field(default_factory=set)

    def add(self, job_id: str, key_id: str | None) -> None:
        self.job_ids.add(job_id)
        if key_id is not None:
            self.key_ids.add(key_id)


class Watch:
    """Looks at the jobs that those name who wait for the next look; at none if nobody waits."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._latest: Mapping[str, JobSnapshot] = {}
        self._round = _Round()
        self._looking: asyncio.Task[_Found] | None = None

    async def first(self, job_id: str, key_id: str | None) -> JobSnapshot | None:
        """Return the job as it is now; None as `next` does."""
        one = _Round()
        one.add(job_id, key_id)
        return _snapshot_of(await self._look(one), job_id, key_id)

    async def next(self, job_id: str, key_id: str | None) -> JobSnapshot | None:
        """Return the job at the next look, which is the same for all who wait for it.

        None if it is gone, if the API key does not work any more, or if the database is away.
        """
        self._round.add(job_id, key_id)
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look_for_all())
        # Others wait for it too, when one of them goes.
        return _snapshot_of(await asyncio.shield(self._looking), job_id, key_id)

    async def _look_for_all(self) -> _Found:
        await asyncio.sleep(POLL_SECONDS)
        # Those who ask while it is made wait for another.
        this, self._round, self._looking = self._round, _Round(), None
        found = await self._look(this)
        self._latest = found.jobs
        return found

    async def _look(self, wanted: _Round) -> _Found:
        try:
            return await run_sync(_read, self._database, wanted, self._latest)
        except UNREACHABLE:
            return _NOTHING


_watches: RunVar[WeakValueDictionary[tuple[Engine, str | None], Watch]] = RunVar("watches")


def watch_of(database: Database) -> Watch:
    """Return the one that all share who follow jobs of this database's tenant, in this loop."""
    try:
        watches = _watches.get()
    except LookupError:
        watches = WeakValueDictionary()
        _watches.set(watches)
    return watches.setdefault((database.engine, database.tenant), Watch(database))


def event_id(job: JobRead) -> str:
    """Return a short name of this state of the job; equal states have equal names."""
    return hashlib.sha256(job.model_dump_json().encode()).hexdigest()[:16]


def _snapshot_of(found: _Found, job_id: str, key_id: str | None) -> JobSnapshot | None:
    is_allowed = key_id is None or key_id in found.working_keys
    return found.jobs.get(job_id) if is_allowed else None


def _read(database: Database, wanted: _Round, before: Mapping[str, JobSnapshot]) -> _Found:
    with database.snapshot() as session:
        working = keys.still_working(session, wanted.key_ids) if wanted.key_ids else frozenset()
        is_wanted = JobRecord.id.in_(wanted.job_ids)
        rows = session.execute(select(JobRecord.id, *_CHANGING).where(is_wanted)).all()
        split = [row.id for row in rows if row.is_split]
        parts = job_parts.part_counts(session, split)
        now = {row.id: (*row, parts.get(row.id)) for row in rows}
        same = {
            job_id: before[job_id]
            for job_id, columns in now.items()
            if job_id in before and before[job_id].columns == columns
        }
        changed = now.keys() - same.keys()
        jobs = (
            session.scalars(select(JobRecord).where(JobRecord.id.in_(changed))) if changed else ()
        )
        fresh = {job.id: _described(now[job.id], describe(job, parts.get(job.id))) for job in jobs}
    return _Found(same | fresh, working)


def _described(columns: tuple[object, ...], job: JobRead) -> JobSnapshot:
    identifier = event_id(job)
    data = json.dumps(job.model_dump(mode="json"), allow_nan=False)
    event = f"event: job\nid: {identifier}\ndata: {data}\n\n".encode()
    return JobSnapshot(columns, identifier, event, job.state.is_terminal)
