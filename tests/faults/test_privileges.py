"""Each gate's own read, failing for want of a privilege: each failure takes its own direction (ADM-2, the table)."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError
from structlog.testing import capture_logs

from db.errors import is_conflict, is_connection_lost, sqlstate
from office_tasks.admission import admit
from tests.faults.gates import HIDDEN, QUESTION
from tests.support import T0, Board

ALLOWED = {"task_id": "T1", "actor_type": "agent", "actor_id": "bob"}
LIMITED = "office_assignment_rate_limit_total"
ADMITTED = "office_run_admissions_total"


def ask(engine, key="k1", **more):
    return admit(engine, Board.wake(payload=ALLOWED, key=key), instant=T0, **more)


@pytest.mark.parametrize("gate", [1, 3, 4])
def test_an_unreadable_gate_is_an_error_and_writes_nothing(board, restricted, moved, gate):
    """ADM-2.2, ADM-6.1: gates 1, 3 and 4 give the caller the error of their own read; no row, no wake, no counter."""
    engine = restricted.engine()
    restricted.hide(*HIDDEN[gate])

    with pytest.raises(DBAPIError) as caught:
        ask(engine)

    assert f"AS {QUESTION[gate]}" in caught.value.statement
    assert sqlstate(caught.value) == "42501"
    assert (board.count("runs"), board.count("wakes")) == (0, 0)
    assert moved(ADMITTED, reason="task_assigned", outcome="queued") == 0


def test_an_unreadable_pause_is_a_pause(board, restricted, moved):
    """ADM-2, C12: gate 2 fails closed: the refusal is recorded and no run stands."""
    engine = restricted.engine()
    restricted.hide(*HIDDEN[2])

    with capture_logs() as logs:
        answer = ask(engine)

    assert (answer.outcome, answer.refusal, answer.gate) == ("none", "pause_gate_unavailable", "workspace_pause")
    assert board.count("runs") == 0
    assert board.wakes()[0]["refusal"] == "pause_gate_unavailable"
    assert moved("office_run_refusals_total", reason="task_assigned", refusal="pause_gate_unavailable") == 1
    warnings = [entry for entry in logs if entry["log_level"] == "warning"]
    assert [(entry["event"], entry["error"][:5]) for entry in warnings] == [("pause_gate_unavailable", "42501")]


def test_an_uncounted_allowance_lets_the_wake_pass(board, restricted, moved):
    """ADM-2.2, ADM-5.1: gate 5 fails open; gate 6 inserts although a statement failed before it."""
    for n in range(6):
        board.assigned(task="T1", agent="bob", by="agent", key=f"before-{n}", wake_id=f"before-{n}")
    runs = board.count("runs")
    engine = restricted.engine()
    restricted.hide(*HIDDEN[5])

    with capture_logs() as logs:
        answer = ask(engine)

    assert (answer.outcome, answer.gate, answer.observed) == ("queued", "insert", None)
    assert board.count("runs") == runs + 1
    assert board.run(answer.run_id)["idempotency_key"] == "k1"
    assert moved(LIMITED, reason="count_read_failed") == 1
    warnings = [entry for entry in logs if entry["log_level"] == "warning"]
    assert [entry["event"] for entry in warnings] == ["assignment_count_failed"]
    assert set(warnings[0]) - {"event", "log_level"} == {
        "task_id", "agent_profile_id", "actor_id", "allowance", "error",
    }  # fmt: skip


def test_an_insert_that_is_refused_is_an_error(board, restricted, moved):
    """ADM-2, ADM-6.1: gate 6 gives the error to the caller; its wake is not recorded either (ADM-10.2)."""
    engine = restricted.engine()
    restricted.revoke("INSERT", "runs")

    with pytest.raises(DBAPIError) as caught:
        ask(engine)

    assert "INSERT INTO runs" in caught.value.statement
    assert sqlstate(caught.value) == "42501"
    assert not is_connection_lost(caught.value)
    assert not is_conflict(caught.value)
    assert (board.count("runs"), board.count("wakes")) == (0, 0)
    assert moved(ADMITTED, reason="task_assigned", outcome="queued") == 0


def test_a_wake_that_cannot_be_recorded_leaves_no_run(board, restricted):
    """ADM-10.2: without its record the effect does not happen."""
    engine = restricted.engine()
    restricted.revoke("INSERT", "wakes")

    with pytest.raises(DBAPIError):
        ask(engine)

    assert board.count("runs") == 0


def test_the_gates_before_a_broken_one_still_decide(board, restricted):
    """ADM-2: the order is the contract: a duplicate is found before the gates that cannot be read are asked."""
    engine = restricted.engine()
    first = ask(engine, key="seen")
    for gate in (4, 5):
        restricted.hide(*HIDDEN[gate])
    restricted.revoke("SELECT", "runs")
    board.execute(f"GRANT SELECT (id, idempotency_key, requested_at) ON runs TO {restricted.role}")

    again = ask(engine, key="seen")

    assert (again.outcome, again.gate, again.run_id) == ("deduped", "recent_duplicate", first.run_id)


def test_a_wake_out_of_scope_is_not_touched_by_a_broken_count(board, restricted, moved):
    """ADM-5.1: gate 5 reads nothing for a wake that is no agent's assignment, so its fault stops and counts nothing."""
    engine = restricted.engine()
    restricted.hide(*HIDDEN[5])

    answer = admit(engine, board.wake(payload={"task_id": "T1", "actor_type": "user"}), instant=T0)

    assert answer.outcome == "queued"
    assert moved(LIMITED, reason="count_read_failed") == 0


def test_nothing_is_written_while_a_retry_may_yet_read_the_pause(board, restricted):
    """ADM-7.4: before its last attempt, a wake is not closed by a pause that nobody can read."""
    engine = restricted.engine()
    restricted.hide(*HIDDEN[2])

    answer = ask(engine, last_attempt=False)

    assert (answer.state, answer.refusal) == ("owed", "pause_gate_unavailable")
    assert (board.count("runs"), board.count("wakes")) == (0, 0)
