"""For callers with a transaction of their own: what they ask for follows if, and only if, it commits (PRO-6.3).

A message can be lost before any worker sees it; a row that commits with the caller's own cannot. The wakes are written
`owed` in the caller's transaction; after its commit a message asks a worker to settle them, and the relay covers the
loss of that message. Admission never uses the caller's connection.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

import structlog
from sqlalchemy import event
from sqlalchemy.orm import Session, SessionTransaction

from office_tasks import validation
from office_tasks.admission import wake
from office_tasks.ids import new_id
from office_tasks.producers import assignments
from office_tasks.producers.mutation import THE_USER, Change, Transaction, Work, perform
from office_tasks.producers.producer import Producer
from office_tasks.tasks import settle_mutation

log: Final = structlog.stdlib.get_logger("office")

Json = Any

_WAITING: Final = "office_mutations"


def assign(session: Session, task_id: str, assignee_id: str, caller_agent_id: str = "") -> str:
    """Assign a task in the caller's transaction; return the id of the mutation (PRO-6.3).

    Args:
        session: on the office's own database; it is neither committed nor rolled back here.
        task_id: the task; its row stays locked until the session's transaction ends.
        assignee_id: the agent; empty unassigns.
        caller_agent_id: the agent that asks; empty for the user.

    Raises:
        InvalidInput: an identifier that is none, or an assignee of another workspace.
        Forbidden: the calling agent may not assign.
        NotFound: no such task, or no such agent.
    """
    return _perform(session, assignments.assignment(task_id, assignee_id, caller_agent_id))


def enqueue(
    session: Session,
    agent_profile_id: str,
    reason: str,
    payload: Json = None,
    idempotency_key: str | None = None,
) -> str:
    """Ask for a wake in the caller's transaction, as `queue_run` does; return the id of the mutation that owes it.

    It follows if, and only if, that transaction commits (PRO-6.3).

    Args:
        session: on the office's own database; it is neither committed nor rolled back here.
        agent_profile_id: who is to be woken.
        reason: why, in a word.
        payload: any JSON value, of 256 KiB at most.
        idempotency_key: stored as given, global to the database; none, or an empty one, for a wake without a key.

    Raises:
        InvalidInput: no id or reason, or a payload or a key that cannot be stored (ADM-8).
    """
    mutation_id = str(new_id())
    owed = wake(
        wake_id=f"{mutation_id}#1",
        agent_profile_id=agent_profile_id,
        reason=reason,
        payload=payload,
        key=validation.given_key(idempotency_key),
        producer=Producer.QUEUE_RUN,
        owed=True,
    )

    def work(_tx: Transaction) -> Change:
        return Change(kind="enqueue", actor=THE_USER, result={"mutation_id": mutation_id}, wakes=[owed])

    return _perform(session, work, mutation_id)


def _perform(session: Session, work: Work, mutation_id: str | None = None) -> str:
    transaction = Transaction(session.connection(), mutation_id or str(new_id()), None)
    perform(transaction, work)
    _settle_after_commit(session, transaction.mutation_id)
    return transaction.mutation_id


class _Waiting(NamedTuple):
    """A mutation whose transaction is still open, and that transaction: the innermost savepoint, or the whole."""

    mutation_id: str
    transaction: SessionTransaction

    def is_within(self, transaction: SessionTransaction) -> bool:
        """Tell whether it falls when `transaction` is rolled back."""
        around: SessionTransaction | None = self.transaction
        while around is not None and around is not transaction:
            around = around.parent
        return around is transaction


def _settle_after_commit(session: Session, mutation_id: str) -> None:
    if _WAITING not in session.info:
        session.info[_WAITING] = []
        event.listen(session, "after_commit", _send)
        event.listen(session, "after_soft_rollback", _forget)
        event.listen(session, "after_transaction_end", _forget_all)
    innermost = session.get_nested_transaction() or session.get_transaction()
    session.info[_WAITING].append(_Waiting(mutation_id, cast("SessionTransaction", innermost)))


def _send(session: Session) -> None:
    # The release of a savepoint is told as a commit too, and commits nothing.
    if session.in_nested_transaction():
        return
    waiting, session.info[_WAITING] = session.info[_WAITING], []
    try:
        for each in waiting:
            settle_mutation.apply_async((each.mutation_id,), ignore_result=True)
    except Exception as error:  # noqa: BLE001 - the caller's commit stands, whatever the broker says
        # One failure is waited for, not one a mutation: the relay settles them all.
        log.warning("settle_not_sent", mutations=len(waiting), error=type(error).__name__)


def _forget(session: Session, rolled_back: SessionTransaction) -> None:
    session.info[_WAITING] = [each for each in session.info[_WAITING] if not each.is_within(rolled_back)]


def _forget_all(session: Session, ended: SessionTransaction) -> None:
    # A session that is closed rolls back without saying so.
    if ended.parent is None:
        session.info[_WAITING] = []
