"""Every producer, with two occurrences of each of its wakes: what PRO-1.1 and PRO-3.1 are told about.

`test_table.py` compares it with the code: a producer, or a function that builds wakes, without a row here fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from db.endings import Ending
from office_tasks import admin, reasons
from office_tasks.execution import orders
from office_tasks.execution.begin import begin
from office_tasks.execution.end import end
from office_tasks.producers import bare
from office_tasks.producers.mutation import Transaction
from office_tasks.producers.producer import Producer
from office_tasks.producers.reactions import Assignment, Changed, CommentAdded, StatusChange, react
from recovery.sweep import sweep_once
from tests.admission.rows import store_run
from tests.producers.acts import Acts, Did

BY_DESIGN = ("by_design", None)


def unresolved(detail: str) -> tuple[str, str]:
    return "unresolved", detail


@dataclass(frozen=True)
class Row:
    """One kind of wake of one producer.

    `varies` is the segment of its key that tells two occurrences apart; without one it has no key, and `keyless` is
    the cause and the detail that it reports. `builder` is the function that builds it.
    """

    producer: Producer
    reason: str
    builder: str
    occurrences: Callable[[Acts], Iterator[Did]]
    varies: int | None = None
    keyless: tuple[str, str | None] | None = None

    def __str__(self) -> str:
        return f"{self.producer}-{self.reason}-{self.keyless[1] or 'by_design' if self.keyless else 'keyed'}"


def _assigned(acts):
    acts.create()
    for _ in range(2):
        yield acts.assign(by="bob")


def _created(acts):
    for task in ("T1", "T2"):
        yield acts.create(task, "ana", by="bob")


def _onboarded(acts):
    for _ in range(2):
        yield acts.onboard()


def _heard(producer, generations):
    def occurrences(acts):
        acts.create(assignee="bob")
        for generation in generations:
            yield acts.hear(producer, "T1", "ana", generation)

    return occurrences


def _entered(transitions):
    def occurrences(acts):
        acts.create(assignee="ana")
        for transition in transitions:
            acts.enter(step="wait")
            yield acts.enter(step="start", transition=transition)

    return occurrences


def _queued(*keys):
    def occurrences(acts):
        for n, key in enumerate(keys):
            yield acts.ask(bare.queue_run(f"q{n}", "ana", reasons.TASK_ASSIGNED, {"task_id": "T1"}, key))

    return occurrences


def _spawned(runs, key):
    def occurrences(acts):
        for n, run in enumerate(runs):
            yield acts.ask(bare.spawn_run(f"s{n}", run, "ana", reasons.TASK_ASSIGNED, {"task_id": "T1"}, key))

    return occurrences


def _unblocking_sets(acts):
    acts.create(assignee="ana")
    for blocker in ("B1", "B2"):
        acts.create(blocker)
        acts.block("T1", blocker)
        yield acts.status("done", blocker, by="bob")


def _completing_sets(acts):
    acts.create(assignee="ana")
    for child in ("C1", "C2"):
        acts.create(child, parent_id="T1")
        yield acts.status("done", child, by="bob")


def _moves(before, after, comment=False):
    def occurrences(acts):
        acts.create(assignee="ana")
        acts.seat("reviewer", "ana")
        for n in (1, 2):
            acts.status(before)
            yield acts.status(after, by="bob", comment=f"c{n}" if comment else "", body="@ana" if comment else "")

    return occurrences


def _comments(acts):
    acts.create(assignee="ana")
    for n in (1, 2):
        yield acts.comment(f"c{n}", "@ana", by="bob")


def _without_generation(acts):
    acts.create()
    for n in (1, 2):
        made = Assignment("ana", None, {"actor_type": "agent", "actor_id": "bob"})
        yield _reacted(acts, n, Producer.ASSIGN_TASK, assignment=made)


def _without_comment_id(producer, status=None):
    def occurrences(acts):
        acts.create(assignee="ana")
        for n in (1, 2):
            comment = CommentAdded(None, "@ana", "ursula", "user")
            yield _reacted(acts, n, producer, comment=comment, status=status)

    return occurrences


def _swept(acts):
    for task in ("T1", "T2"):
        acts.create(task, "ana")
        acts.board.execute("UPDATE runs SET status = 'failed', finished_at = now()")
        acts.board.execute("UPDATE tasks SET created_at = now()")
        summary = sweep_once(acts.engine, f"sweep-of-{task}")
        yield Did(summary, acts.board.rows("SELECT * FROM wakes WHERE id LIKE :id", id=f"sweep-of-{task}#%"))
        acts.board.execute("UPDATE tasks SET status = 'done'")


def _retried(acts):
    for number in (1, 2):
        run_id = store_run(acts.board, payload={"task_id": f"T{number}"}, status="failed")
        wake_id, at = acts._next()
        result = orders.retry(acts.engine, wake_id, str(run_id), at)
        yield Did(result, acts.board.rows("SELECT * FROM wakes WHERE id = :id", id=wake_id))


def _failed(acts):
    admin.create_agent(acts.engine, "acme", "cleo", role="ceo")
    for task in ("T1", "T2"):
        acts.create(task)
        store_run(acts.board, reason=reasons.TASK_COMMENT, payload={"task_id": task})
        run = begin(acts.engine).run
        over = end(acts.engine, run, Ending("fail", error="no luck"))
        of_it = "SELECT * FROM wakes WHERE mutation_id = :id"
        yield Did(over.told(), acts.board.rows(of_it, id=f"failed:{run.id}"))


def _reacted(acts, n, producer, **changed):
    """Call the pipeline itself, as no producer of ours does: without what the row would have said."""
    from db import board

    with acts.engine.begin() as connection:
        task = board.standing(connection, "T1")
        tx = Transaction(connection, f"r{n}", None)
        wakes = react(tx.connection, Changed(producer, task, **changed), tx.mutation_id)
    done = [acts.ask(replace(one, owed=False)) for one in wakes]
    return Did([did.result for did in done], [row for did in done for row in did.wakes])


P = Producer
R = reasons
REOPENING = StatusChange("done", "todo", reopens_with_comment=True)

TABLE = (
    Row(P.QUEUE_RUN, R.TASK_ASSIGNED, "bare.queue_run", _queued("k:1", "k:2"), varies=1),
    Row(P.QUEUE_RUN, R.TASK_ASSIGNED, "bare.queue_run", _queued("", None), keyless=BY_DESIGN),
    Row(P.SPAWN_RUN, R.TASK_ASSIGNED, "bare.spawn_run", _spawned(("r1", "r2"), "k"), varies=1),
    Row(P.SPAWN_RUN, R.TASK_ASSIGNED, "bare.spawn_run", _spawned(("r1", "r1"), ""), keyless=BY_DESIGN),
    Row(P.SPAWN_RUN, R.TASK_ASSIGNED, "bare.spawn_run", _spawned((None, ""), "k"), keyless=unresolved("no_caller_run")),
    Row(P.ASSIGN_TASK, R.TASK_ASSIGNED, "reactions._assigned", _assigned, varies=3),
    Row(
        P.ASSIGN_TASK, R.TASK_ASSIGNED, "reactions._assigned", _without_generation,
        keyless=unresolved("nil_mutation_generation"),
    ),
    Row(P.CREATE_TASK, R.TASK_ASSIGNED, "creation._asks", _created, varies=1),
    Row(P.TASK_CREATED, R.TASK_ASSIGNED, "inbound._wake", _heard(P.TASK_CREATED, (5, 6)), varies=3),
    Row(P.TASK_UPDATED, R.TASK_ASSIGNED, "inbound._wake", _heard(P.TASK_UPDATED, (5, 6)), varies=3),
    *(
        Row(
            producer, R.TASK_ASSIGNED, "inbound._wake", _heard(producer, (None, None)),
            keyless=unresolved("event_missing_generation"),
        )
        for producer in (P.TASK_CREATED, P.TASK_UPDATED)
    ),
    Row(P.ONBOARD_TASK, R.TASK_ASSIGNED, "creation._asks", _onboarded, varies=1),
    Row(
        P.ONBOARD_TASK, R.TASK_ASSIGNED, "creation._asks", _onboarded, keyless=unresolved("onboarding_no_generation")
    ),
    Row(P.ENTER_STEP, R.TASK_ASSIGNED, "steps._asks", _entered(("t1", "t2")), varies=4),
    Row(
        P.ENTER_STEP, R.TASK_ASSIGNED, "steps._asks", _entered((0, None)), keyless=unresolved("zero_step_transition")
    ),
    Row(P.SET_TASK_STATUS, R.TASK_BLOCKERS_RESOLVED, "reactions._blockers_resolved", _unblocking_sets, varies=3),
    Row(P.SET_TASK_STATUS, R.TASK_CHILDREN_COMPLETED, "reactions._children_completed", _completing_sets, varies=3),
    Row(
        P.SET_TASK_STATUS, R.TASK_REVIEW_REQUESTED, "reactions._review_requested", _moves("todo", "in_review"),
        keyless=BY_DESIGN,
    ),
    Row(P.SET_TASK_STATUS, R.TASK_UNBLOCKED, "reactions._unblocked", _moves("blocked", "todo"), keyless=BY_DESIGN),
    Row(P.SET_TASK_STATUS, R.TASK_REOPENED, "reactions._reopened", _moves("done", "todo"), keyless=BY_DESIGN),
    Row(
        P.SET_TASK_STATUS, R.TASK_REOPENED_VIA_COMMENT, "reactions._reopened", _moves("done", "todo", comment=True),
        varies=1,
    ),
    Row(P.SET_TASK_STATUS, R.TASK_COMMENT, "reactions._commented", _moves("todo", "blocked", comment=True), varies=1),
    Row(P.SET_TASK_STATUS, R.TASK_MENTIONED, "reactions._mentioned", _moves("todo", "done", comment=True), varies=1),
    Row(
        P.SET_TASK_STATUS, R.TASK_REOPENED_VIA_COMMENT, "reactions._reopened",
        _without_comment_id(P.SET_TASK_STATUS, REOPENING), keyless=unresolved("nil_mutation_comment"),
    ),
    Row(P.ADD_COMMENT, R.TASK_COMMENT, "reactions._commented", _comments, varies=1),
    Row(P.ADD_COMMENT, R.TASK_MENTIONED, "reactions._mentioned", _comments, varies=1),
    Row(P.FAILED_RUN, R.AGENT_ERROR, "end._alarm", _failed, varies=1),
    Row(P.MANUAL_RESUME, R.MANUAL_RESUME, "orders._again", _retried, keyless=BY_DESIGN),
    Row(P.RECOVERY_SWEEP, R.TASK_ASSIGNED, "sweep._owe", _swept, keyless=BY_DESIGN),
    *(
        Row(P.ADD_COMMENT, reason, builder, _without_comment_id(P.ADD_COMMENT),
            keyless=unresolved("nil_mutation_comment"))
        for reason, builder in ((R.TASK_COMMENT, "reactions._commented"), (R.TASK_MENTIONED, "reactions._mentioned"))
    ),
)  # fmt: skip
