"""All that is known of a task, a run or a wake, put together."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from db import explaining, listing, unstarted
from office_tasks.errors import NotFound
from office_tasks.prose import shown
from office_tasks.why import runs, tasks, wakes
from office_tasks.why.causer import Causer, causer
from office_tasks.why.words import Row

# Asked only when something waits for nothing but a worker: given the queues that matter, what to say of their workers.
AskWorkers = Callable[[Sequence[str]], Sequence[str]]

# What is read along with a row to say why, and is no column of it.
_CONTEXT: Final = ("now", "agent_status", "workspace_id", "workspace_paused_at", "pause_reason", "is_replay",
                   "executing", "executing_limit", "ahead", "mutation_actor_type", "mutation_actor_id")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    """A wake or a run: its row, what it is in a line, and what is to be said of it."""

    row: Row
    title: str
    sentences: Sequence[str]
    asked_by: Causer | None = None

    def document(self) -> dict[str, Any]:
        """Return it as JSON: the row's columns, of a wake who asked, and the sentences."""
        columns = {name: value for name, value in self.row.items() if name not in _CONTEXT}
        asked_by = {"asked_by": self.asked_by._asdict()} if self.asked_by else {}
        return {**columns, **asked_by, "sentences": list(self.sentences)}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why. `task` is None when the board has no such task, or none is named; wakes and runs come newest first."""

    kind: str
    id: str
    task: Row | None
    now: Sequence[str]
    wakes: Sequence[Told]
    runs: Sequence[Told]

    def document(self) -> Mapping[str, Any]:
        """Return it as JSON."""
        return {
            "kind": self.kind,
            "id": self.id,
            "task": self.task,
            "now": list(self.now),
            "wakes": [wake.document() for wake in self.wakes],
            "runs": [run.document() for run in self.runs],
        }


def explain(connection: Connection, named: str, ask_workers: AskWorkers) -> Explanation:
    """Explain a task, a run or a wake: the last 20 wakes, what decided each, and what is in the way now (ADM-10.6).

    Args:
        connection: to read with.
        named: the id of any of them.
        ask_workers: asked once at the most, and only when something waits for nothing but a worker.

    Raises:
        NotFound: nothing has that id.
    """
    kind = explaining.kind_of(connection, named)
    if kind is None:
        raise NotFound(f"there is no task, run or wake {shown(named)}, or it is past its retention")
    found_wakes = explaining.wakes_of(connection, kind, named)
    found_runs = _runs(connection, kind, named, found_wakes)
    task_id = named if kind == "task" else next((row["task_id"] for row in (*found_wakes, *found_runs)), None)
    task = listing.task(connection, task_id) if task_id else None
    now = _now(connection, task_id, task, found_wakes)
    queues = _queues(found_wakes, found_runs)
    return Explanation(
        kind,
        named,
        task,
        [*now, *(ask_workers(queues) if queues else ())],
        [_wake(row, found_runs) for row in found_wakes],
        [_run(row, task_id, task) for row in found_runs],
    )


def _runs(connection: Connection, kind: str, named: str, found: explaining.Rows) -> explaining.Rows:
    """Return the runs that the wakes became or met, and those of the task whose wakes are gone."""
    ids = {row["run_id"] for row in found if row["run_id"]} | ({uuid.UUID(named)} if kind == "run" else set())
    rows = {row["id"]: row for row in explaining.runs(connection, ids)} if ids else {}
    if kind == "task":
        rows = {row["id"]: row for row in explaining.runs_of_task(connection, named)} | rows
    return sorted(rows.values(), key=lambda row: (row["requested_at"], row["id"]), reverse=True)


def _wake(row: Row, found_runs: explaining.Rows) -> Told:
    return Told(row, wakes.asked(row), [*wakes.decided(row), *_gone(row, found_runs)], causer(row))


def _run(row: Row, task_id: str | None, task: Row | None) -> Told:
    # A key may have been used for two tasks: how the other one stands is not known here.
    moot = runs.is_moot(row, task) if row["task_id"] == task_id else []
    return Told(row, f"{row['reason']} of {row['agent_profile_id']}", [*runs.became(row), *moot])


def _gone(wake: Row, found: explaining.Rows) -> list[str]:
    gone = wake["run_id"] is not None and wake["run_id"] not in {row["id"] for row in found}
    return ["That run is not there any more: it is past its retention."] if gone else []


def _now(connection: Connection, task_id: str | None, task: Row | None, found: explaining.Rows) -> list[str]:
    if task_id is None:
        return []
    if task is None:
        return [f"There is no task {task_id} on the board."]
    verdict = unstarted.examine(connection, task_id)
    asked = [] if found else ["Nobody asked that anybody be started for it, or what was asked is past its retention."]
    swept = [tasks.swept(verdict, task)] if verdict else []
    return [*asked, *tasks.blocked(explaining.open_blockers(connection, task_id)), *swept]


def _queues(found_wakes: explaining.Rows, found_runs: explaining.Rows) -> list[str]:
    relay = ["recovery"] if any(map(wakes.is_for_the_relay, found_wakes)) else []
    return [*relay, *(["execution"] if any(map(runs.is_for_a_worker, found_runs)) else [])]
