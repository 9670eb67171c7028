"""Where a replay plays: its workspace, its agents, and what of the file stands there already."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, NamedTuple

from sqlalchemy import Engine

from db import replays
from db.engine import autocommit
from db.migrate import pending
from office_tasks.replay.errors import ReplayError
from office_tasks.replay.events import BadLine, Event
from office_tasks.replay.identity import Identity

BATCH: Final = 400
ROLE: Final = "worker"
# So many agents are remembered as hired; beyond, they are asked about again rather than remembered.
_REMEMBERED: Final = 50_000


class Applied(NamedTuple):
    """An event that an earlier replay committed; one that was killed may not have settled it."""

    event: Event
    settled: bool


class Stage:
    """The workspace of one replay, open for events."""

    def __init__(self, engine: Engine, identity: Identity) -> None:
        self.engine = engine
        self.identity = identity
        self._hired: set[str] = set()

    def prepared(self, found: Iterable[Event | BadLine]) -> Iterator[list[Event | BadLine | Applied]]:
        """Yield the events in batches, their agents hired, those that were applied before marked."""
        rest = iter(found)
        while batch := list(islice(rest, BATCH)):
            events = [item for item in batch if isinstance(item, Event)]
            with autocommit(self.engine) as connection:
                known = replays.applied(connection, [self.mutation_id(event) for event in events])
            self._hire({agent for event in events for agent in (event.assignee_id, event.caller_agent_id) if agent})
            yield [self._marked(item, known) for item in batch]

    def mutation_id(self, event: Event) -> str:
        """Return the id of the event's mutation."""
        return self.identity.mutation_id(event.number)

    def create(self, event: Event) -> dict[str, Any]:
        """Return what `create_task` is asked for a `create` event; nobody is named as its actor."""
        own = self.identity.own
        return {
            "workspace_id": self.identity.workspace_id,
            "title": event.task_id,
            "task_id": own(event.task_id),
            "step_id": self.identity.step_id,
            "assignee_id": own(event.assignee_id),
        }

    def assign(self, event: Event) -> dict[str, Any]:
        """Return what `assign_task` is asked for an `assign` event."""
        own = self.identity.own
        return {
            "task_id": own(event.task_id),
            "assignee_id": own(event.assignee_id),
            "caller_agent_id": own(event.caller_agent_id),
        }

    def _marked(self, item: Event | BadLine, known: Any) -> Event | BadLine | Applied:  # noqa: ANN401 - a mapping
        if isinstance(item, Event) and (settled := known.get(self.mutation_id(item))) is not None:
            return Applied(item, settled)
        return item

    def _hire(self, agents: set[str]) -> None:
        new = agents - self._hired
        if not new:
            return
        with self.engine.begin() as connection:
            replays.hire(connection, self.identity.workspace_id, ROLE, map(self.identity.own, new))
        if len(self._hired) > _REMEMBERED:
            self._hired.clear()
        self._hired |= new


@contextmanager
def opened(engine: Engine, file_digest: str, *, allow_shared: bool) -> Iterator[Stage]:
    """Open the file's workspace, for this replay alone until it is over.

    Raises:
        ReplayError: the schema is behind, other workspaces live here, or another replay of the file is running.
    """
    if pending(engine):
        raise ReplayError("the database's schema is not this version's: run `office migrate` first")
    with autocommit(engine) as connection:
        alone, beside = Identity(file_digest), Identity(file_digest, shared=True)
        if not replays.lock(connection, alone.workspace_id):
            raise ReplayError("another replay of this file is running on this database: wait for it or stop it")
        # A replay goes on where it began, whoever moved in since.
        began_alone = replays.has_workspace(connection, alone.workspace_id)
        other = replays.another_workspace(connection, alone.workspace_id)
        if other is not None and not allow_shared:
            raise ReplayError(
                f"the database holds other workspaces ({other!r} is one) and a replay stays out of those: name another"
                " database, name none for a throwaway one, or add --allow-shared"
            )
        identity = alone if began_alone or other is None else beside
        with engine.begin() as writing:
            replays.open_workspace(writing, identity.workspace_id, "replay", identity.step_id)
        yield Stage(engine, identity)
