"""The six gates and their order, the instant they share, and where each decides."""

from __future__ import annotations

import ast
import itertools
import uuid
from inspect import signature

import pytest
from sqlalchemy import text

from office_tasks import admin
from office_tasks.admission import ALLOWANCE_WINDOW, ASSIGNMENT_ALLOWANCE, GATES, admit
from office_tasks.admission.gates import WhenUnread
from tests.admission import source
from tests.admission.rows import store_agent_assignments, store_run
from tests.support import T0, Board, after

PAYLOAD = {"task_id": "T1", "actor_type": "agent", "actor_id": "bob"}
ORDER = ["agent_status", "workspace_pause", "recent_duplicate", "coalesce", "assignment_allowance", "insert"]


def test_the_order_is_pinned():
    """ADM-2.1: the six, in this order, each with its direction when its read fails."""
    assert [gate.decide.__name__ for gate in GATES] == ORDER
    error, closed, opened = WhenUnread.ERROR, WhenUnread.CLOSED, WhenUnread.OPEN
    assert [gate.when_unread for gate in GATES] == [error, closed, error, error, opened, error]


def test_the_gates_are_pure_functions_in_one_tuple():
    """ADM-2.1: one signature, over what was read; no gate touches a connection."""
    assert isinstance(GATES, tuple)
    assert {len(signature(gate.decide).parameters) for gate in GATES} == {2}
    [(_, tree)] = source.modules("office_tasks/admission/gates.py")
    assert not [module for module, _ in source.imports(tree) if module.startswith("sqlalchemy")]


def stand_in_the_way(acme, obstacles):
    """Put up what makes each named gate decide about the keyed agent assignment of T1 to ana."""
    if "agent_status" in obstacles:
        admin.set_agent_status(acme.engine, "ana", "stopped")
    if "workspace_pause" in obstacles:
        acme.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    if "recent_duplicate" in obstacles:
        store_run(acme, after(hours=-1), key="k", status="finished")
    if "coalesce" in obstacles:
        store_run(acme, after(seconds=-1), payload={"task_id": "T1"})
    if "assignment_allowance" in obstacles:
        store_agent_assignments(acme, *[after(minutes=-1)] * ASSIGNMENT_ALLOWANCE)


@pytest.mark.parametrize("obstacles", [ORDER[first:-1] for first in range(6)], ids=ORDER)
def test_the_first_gate_that_decides_stops_the_walk(acme, obstacles):
    """ADM-2.1: with every later gate about to decide too, the earlier one does."""
    stand_in_the_way(acme, obstacles)
    answer = acme.ask(payload=PAYLOAD, key="k")
    assert answer.gate == (obstacles[0] if obstacles else "insert")
    assert acme.wakes()[-1]["gate"] == answer.gate


@pytest.mark.parametrize("obstacles", list(itertools.combinations(ORDER[:-1], 2)), ids="-".join)
def test_of_two_gates_the_earlier_decides(acme, obstacles):
    """ADM-2.1: every pair, in the order of the contract."""
    stand_in_the_way(acme, obstacles)
    assert acme.ask(payload=PAYLOAD, key="k").gate == obstacles[0]


def test_one_instant_is_used_throughout(acme):
    """ADM-2.3: the injected instant is the row's `requested_at`, and the wake's."""
    answer = acme.ask(after(days=40), payload=PAYLOAD, key="k")
    assert acme.run(answer.run_id)["requested_at"] == after(days=40)
    [wake] = acme.wakes()
    assert wake["requested_at"] == wake["decided_at"] == after(days=40)


def test_the_instant_is_the_servers(acme, admission_url, make_test_engine):
    """ADM-2.3: with none injected it is read from Postgres; its clock, not ours, moves the windows."""
    engine = make_test_engine(url=admission_url, session={"office.now": "2031-05-06T07:08:09.123456Z"})
    answer = admit(engine, Board.wake())
    assert acme.run(answer.run_id)["requested_at"].isoformat() == "2031-05-06T07:08:09.123456+00:00"


def test_the_instant_is_that_of_the_attempt_not_of_the_request(acme):
    """ADM-2.3: a wake that is decided an hour after it was asked for is decided by the later clock."""
    asked = Board.wake(payload=PAYLOAD)
    store_run(acme, T0, payload={"task_id": "T1"})
    assert admit(acme.engine, asked, instant=after(hours=1)).outcome == "queued"


def test_no_clock_of_python_decides():
    """ADM-2.3, C32: neither the queries nor admission read a clock of the process they run in."""
    for where, tree in source.modules("db", "office_tasks/admission", "office_tasks/producers"):
        assert not source.called_names(tree) & {"now_utc", "utcnow", "today", "monotonic", "perf_counter"}, where
        assert "time" not in {module for module, _ in source.imports(tree)}, where
        clocks = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "now"]
        assert {ast.unparse(clock.value) for clock in clocks} <= {"clock"}, where


def test_gates_three_and_four_have_no_upper_bound(acme):
    """ADM-2.3: a row stamped a little later than the instant still matches."""
    duplicate = store_run(acme, after(seconds=2), key="k", status="finished")
    mergeable = store_run(acme, after(seconds=2), payload={"task_id": "T1"})
    assert (acme.ask(key="k").outcome, acme.wakes()[0]["run_id"]) == ("deduped", duplicate)
    answer = acme.ask(payload=PAYLOAD)
    assert (answer.outcome, answer.run_id) == ("coalesced", mergeable)


def test_gate_five_has_an_upper_bound(acme):
    """ADM-2.3, ADM-5.2: rows stamped later than the instant are not counted; one at the instant is."""
    store_agent_assignments(acme, *[after(microseconds=1)] * ASSIGNMENT_ALLOWANCE)
    assert acme.assigned().observed == 0
    store_agent_assignments(acme, *[T0] * (ASSIGNMENT_ALLOWANCE - 1))
    assert acme.assigned(by="agent", agent="bob").outcome == "rate_limited"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_whether_a_gate_decides_does_not_depend_on_row_order(acme, order):
    """ADM-2.4: whichever way the rows lie, the same gates decide and the same row is merged into."""
    ids = sorted(uuid.uuid4() for _ in range(3))
    ages = [after(seconds=-3), after(seconds=-1), after(seconds=-1)]
    for index in order:
        store_run(acme, ages[index], payload=PAYLOAD, run_id=ids[index])
    answer = acme.ask(payload=PAYLOAD)
    assert (answer.outcome, answer.run_id) == ("coalesced", ids[2])


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_count_does_not_depend_on_row_order(acme, order):
    """ADM-2.4: two inside the window and one outside are two, however they lie."""
    ages = [-ALLOWANCE_WINDOW, -ALLOWANCE_WINDOW / 2, -ALLOWANCE_WINDOW / 2]
    for index in order:
        store_agent_assignments(acme, T0 + ages[index])
    assert acme.assigned().observed == 2


def test_admission_never_uses_its_callers_connection(acme):
    """ADM-2.5: inside a caller's open transaction that is then rolled back, the admission stands."""
    with acme.engine.connect() as connection, connection.begin() as transaction:
        connection.execute(text("SELECT 1"))
        answer = acme.ask()
        transaction.rollback()
    assert acme.run(answer.run_id)["status"] == "queued"


@pytest.mark.parametrize("column", ["NULL", "'nowhere'"])
def test_an_agent_without_a_readable_workspace_is_refused_as_unreadable(acme, column):
    """ADM-2.6: no workspace, or one whose row is missing, is unreadable, not unpaused."""
    acme.execute(f"UPDATE agents SET workspace_id = {column} WHERE id = 'ana'")
    answer = acme.ask()
    assert (answer.outcome, answer.refusal, answer.gate) == ("none", "pause_gate_unavailable", "workspace_pause")
    assert acme.count("runs") == 0


def test_gate_two_reads_the_agents_workspace(acme):
    """ADM-2.6: the pause of the workspace that the task is in stops nobody of another workspace."""
    admin.create_workspace(acme.engine, "other", workflow_id="flow")
    admin.create_agent(acme.engine, "other", "olga")
    acme.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    assert acme.ask(agent="olga", payload={"task_id": "T1"}).outcome == "queued"
    assert acme.ask(agent="ana").refusal == "workspace_paused"


@pytest.mark.parametrize("status", ["paused", "stopped", "pending_approval"])
def test_gate_one_refuses_who_may_not_be_woken(acme, status):
    """ADM-2.1: gate 1 refuses every status but the wakeable one, and an agent that does not exist."""
    admin.set_agent_status(acme.engine, "ana", status)
    assert acme.ask().refusal == "agent_not_wakeable"
    assert acme.ask(agent="ghost").refusal == "agent_not_found"
    assert acme.count("runs") == 0
