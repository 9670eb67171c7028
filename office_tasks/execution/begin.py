"""Before a handler starts: a run is claimed, checked for staleness, and given its session, all in one commit."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Final, NamedTuple

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from db import claims, sessions, work
from db.claims import Claimed, Overtaken
from db.endings import Ending
from db.errors import is_stalled
from db.sessions import SessionFacts
from db.states import TASK_CLOSED
from db.work import AgentFacts, TaskFacts
from office_tasks import reasons
from office_tasks.execution.end import Over, write
from office_tasks.ids import new_id

TASK_GONE: Final = "task_gone"
RUNNER_CHANGED: Final = "runner_changed"
TASK_TERMINAL: Final = "task_terminal"

# These are about a closed task, or about what is to become of it.
_OF_CLOSED_TASKS: Final = frozenset({
    reasons.TASK_MENTIONED,
    reasons.TASK_REOPENED,
    reasons.TASK_REOPENED_VIA_COMMENT,
    reasons.AGENT_ERROR,
})  # fmt: skip


class About(NamedTuple):
    """A run, as far as its staleness goes."""

    task_id: str | None
    reason: str
    agent_profile_id: str


class Stands(NamedTuple):
    """A task, as far as the staleness of its runs goes."""

    status: str
    runner_id: str | None


@dataclass(frozen=True, slots=True)
class Begun:
    """A claimed run, and what it is about."""

    run: Claimed
    agent: AgentFacts
    task: TaskFacts | None
    session: SessionFacts | None


def begin(engine: Engine) -> Begun | Over | None:
    """Claim the next run that may start, ready to execute; return instead that it was stale, or None for no run."""
    passed: list[str] = []
    while True:
        try:
            with engine.begin() as connection:
                run = claims.claim(connection, uuid.uuid4(), passed)
                return run and _prepare(connection, run)
        except Overtaken as overtaken:
            passed.append(overtaken.agent_profile_id)
        except DBAPIError as error:
            if not is_stalled(error):
                raise
            # Whoever could start is held by somebody: the safety net looks again in a few seconds.
            return None


def stale(run: About, task: Stands | None) -> str | None:
    """Return why a run that is claimed now is executed no more, or None (REC-2.3)."""
    if run.task_id is None:
        return None
    if task is None:
        return TASK_GONE
    if run.reason == reasons.TASK_ASSIGNED and task.runner_id != run.agent_profile_id:
        return RUNNER_CHANGED
    return TASK_TERMINAL if task.status in TASK_CLOSED and run.reason not in _OF_CLOSED_TASKS else None


def _prepare(connection: Connection, run: Claimed) -> Begun | Over:
    agent, task = work.seen(connection, run.agent_profile_id, run.task_id)
    about = About(run.task_id, run.reason, run.agent_profile_id)
    if why := stale(about, Stands(task.status, task.runner_id) if task else None):
        return write(connection, run, Ending("cancel", cancel_reason=why))
    return Begun(run, agent, task, _session(connection, run))


def _session(connection: Connection, run: Claimed) -> SessionFacts | None:
    if run.task_id is None:
        return None
    return sessions.obtain(connection, run.id, run.task_id, run.agent_profile_id, new_id())
