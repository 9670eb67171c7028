"""What a change wakes: one pipeline that takes what changed and returns the wakes that it owes (PRO-3, PRO-5).

It runs inside the mutation's transaction, so that the change and what it owes commit or fail as one. Each reaction is a
function of one signature; which of them runs is decided by what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from db import board, comments, readiness, slate
from db.states import TASK_CLOSED
from office_tasks import keys, reasons
from office_tasks.admission import BY_DESIGN, Keyless, Wake, wake
from office_tasks.admission.wake import AGENT
from office_tasks.producers.eligibility import withheld
from office_tasks.producers.mentions import mentioned
from office_tasks.producers.producer import Producer

AT_WORK: Final = frozenset({"todo", "in_progress"})
REVIEWERS: Final = frozenset({"reviewer", "approver"})
NO_GENERATION: Final = Keyless("unresolved", "nil_mutation_generation")
NO_COMMENT: Final = Keyless("unresolved", "nil_mutation_comment")


@dataclass(frozen=True, slots=True)
class Assignment:
    """Who was made the runner, under which generation, and what the payload says of the actor (PRO-3)."""

    assignee_id: str | None
    generation: int | None
    actor: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StatusChange:
    """From which status to which; `reopens_with_comment` when a comment came with it."""

    before: str
    after: str
    reopens_with_comment: bool = False

    @property
    def reopens(self) -> bool:
        """Tell whether closed work is taken up again."""
        return self.before in TASK_CLOSED and self.after in AT_WORK


@dataclass(frozen=True, slots=True)
class CommentAdded:
    """A comment, as far as it concerns who is woken."""

    id: str | None
    body: str
    author_id: str
    author_type: str

    def is_by(self, agent_profile_id: str) -> bool:
        """Tell whether that agent wrote it; a user may have an agent's id and is somebody else all the same."""
        return self.author_type == AGENT and self.author_id == agent_profile_id


@dataclass(frozen=True, slots=True)
class Changed:
    """What one mutation changed on one task."""

    producer: Producer
    task: board.Standing
    assignment: Assignment | None = None
    status: StatusChange | None = None
    comment: CommentAdded | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """One wake that a reaction asks for."""

    agent_profile_id: str
    reason: str
    payload: Mapping[str, Any]
    key: str | None = None
    keyless: Keyless = BY_DESIGN
    generation: int | None = None


def react(connection: Connection, changed: Changed, mutation_id: str) -> list[Wake]:
    """Return the wakes that the change owes, in a fixed order, each agent at most once per task and reason (PRO-3.6).

    Raises:
        DBAPIError: a read failed; the mutation must fail with it, and be retried (PRO-1.5).
    """
    asks = {
        (ask.agent_profile_id, ask.payload.get("task_id"), ask.reason): ask
        for reaction in REACTIONS
        for ask in reaction(connection, changed)
    }
    return owe(mutation_id, changed.producer, asks.values())


def owe(mutation_id: str, producer: Producer, asks: Iterable[Ask]) -> list[Wake]:
    """Return the asks as owed wakes, numbered in their order."""
    return [
        wake(
            wake_id=f"{mutation_id}#{number}",
            agent_profile_id=ask.agent_profile_id,
            reason=ask.reason,
            payload=dict(ask.payload),
            key=ask.key,
            keyless=ask.keyless,
            generation=ask.generation,
            producer=producer,
            owed=True,
        )
        for number, ask in enumerate(asks, start=1)
    ]


def _assigned(_connection: Connection, changed: Changed) -> Iterator[Ask]:
    made = changed.assignment
    if made is None or made.assignee_id is None or withheld(changed.task, changed.producer):
        return
    task_id = changed.task.task_id
    yield Ask(
        made.assignee_id,
        reasons.TASK_ASSIGNED,
        {"task_id": task_id, **made.actor},
        keys.task_assigned(task_id, made.assignee_id, made.generation) if made.generation else None,
        NO_GENERATION,
        made.generation,
    )


def _blockers_resolved(connection: Connection, changed: Changed) -> Iterator[Ask]:
    if _is_done(changed):
        for ready in readiness.unblocked_by(connection, changed.task.task_id):
            yield from _over(ready, reasons.TASK_BLOCKERS_RESOLVED, keys.task_blockers_resolved)


def _children_completed(connection: Connection, changed: Changed) -> Iterator[Ask]:
    if _is_done(changed):
        for ready in readiness.completed_by(connection, changed.task.task_id):
            yield from _over(ready, reasons.TASK_CHILDREN_COMPLETED, keys.task_children_completed)


def _review_requested(connection: Connection, changed: Changed) -> Iterator[Ask]:
    if not (changed.status and changed.status.after == "in_review" and changed.task.is_office):
        return
    roles: dict[str, list[str]] = {}
    for seated in slate.slate(connection, changed.task.task_id):
        if seated.role in REVIEWERS:
            roles.setdefault(seated.agent_profile_id, []).append(seated.role)
    for agent, held in roles.items():
        yield Ask(agent, reasons.TASK_REVIEW_REQUESTED, {"task_id": changed.task.task_id, "roles": sorted(held)})


def _unblocked(_connection: Connection, changed: Changed) -> Iterator[Ask]:
    if changed.status and changed.status.before == "blocked":
        yield from _runner(changed, reasons.TASK_UNBLOCKED)


def _reopened(_connection: Connection, changed: Changed) -> Iterator[Ask]:
    if not (changed.status and changed.status.reopens):
        return
    if not changed.status.reopens_with_comment:
        yield from _runner(changed, reasons.TASK_REOPENED)
        return
    comment_id = changed.comment.id if changed.comment else None
    for ask in _runner(changed, reasons.TASK_REOPENED_VIA_COMMENT):
        key = keys.task_reopened_via_comment(comment_id, ask.agent_profile_id) if comment_id else None
        yield Ask(ask.agent_profile_id, ask.reason, _of_comment(changed), key, NO_COMMENT)


def _commented(_connection: Connection, changed: Changed) -> Iterator[Ask]:
    comment = changed.comment
    if comment is None or _is_closed(changed) or (changed.status and changed.status.reopens):
        return
    for ask in _runner(changed, reasons.TASK_COMMENT):
        if not comment.is_by(ask.agent_profile_id):
            key = keys.task_comment(comment.id, ask.agent_profile_id) if comment.id else None
            yield Ask(ask.agent_profile_id, ask.reason, _of_comment(changed), key, NO_COMMENT)


def _mentioned(connection: Connection, changed: Changed) -> Iterator[Ask]:
    comment = changed.comment
    if comment is None or not changed.task.is_office:
        return
    for agent in comments.agents_among(connection, changed.task.workspace_id, mentioned(comment.body)):
        if not comment.is_by(agent):
            key = keys.task_mentioned(comment.id, agent) if comment.id else None
            yield Ask(agent, reasons.TASK_MENTIONED, _of_comment(changed), key, NO_COMMENT)


def _is_done(changed: Changed) -> bool:
    return changed.status is not None and changed.status.after == "done"


def _over(ready: readiness.Ready, reason: str, key: Callable[[str, str, Sequence[str]], str]) -> Iterator[Ask]:
    """Ask for the runner of a task whose whole set is over; the key digests the very set that was read (PRO-1.5)."""
    if ready.runner_id and ready.is_office:
        yield Ask(ready.runner_id, reason, {"task_id": ready.task_id}, key(ready.task_id, ready.runner_id, ready.ids))


def _is_closed(changed: Changed) -> bool:
    return (changed.status.after if changed.status else changed.task.status) in TASK_CLOSED


def _runner(changed: Changed, reason: str) -> Iterator[Ask]:
    if changed.task.runner_id and changed.task.is_office:
        yield Ask(changed.task.runner_id, reason, {"task_id": changed.task.task_id})


def _of_comment(changed: Changed) -> Mapping[str, Any]:
    comment_id = changed.comment.id if changed.comment else None
    return {"task_id": changed.task.task_id, **({"comment_id": comment_id} if comment_id else {})}


REACTIONS: Final = (
    _assigned,
    _blockers_resolved,
    _children_completed,
    _review_requested,
    _unblocked,
    _reopened,
    _commented,
    _mentioned,
)
