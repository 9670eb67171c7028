"""C12: the pause lookup itself fails, for one workspace, and another keeps working throughout."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError
from structlog.testing import capture_logs

from db.errors import is_connection_lost
from office_tasks import admin, retries
from office_tasks.admission import admit
from office_tasks.errors import AgentNotFound, PauseGateUnavailable, WorkspacePaused
from office_tasks.producers import bare
from tests.faults.gates import MARK
from tests.faults.waits import in_background, terminate_whoever_waits, until_blocked
from tests.support import T0

FAULTS = {
    "its workspace row is missing": "DELETE FROM workspaces WHERE id = 'acme'",
    "it has no workspace": "UPDATE agents SET workspace_id = NULL WHERE workspace_id = 'acme'",
    "its workspace was never there": "UPDATE agents SET workspace_id = 'gone' WHERE workspace_id = 'acme'",
}


@pytest.fixture(autouse=True)
def other(board):
    """A second workspace with an agent of its own."""
    admin.create_workspace(board.engine, "other")
    admin.create_agent(board.engine, "other", "olga")


@pytest.mark.parametrize("fault", FAULTS)
def test_an_agent_whose_workspace_cannot_be_read_is_not_woken(board, moved, fault):
    """C12, ADM-2.6: unreadable is not unpaused: no row, one warning, and a refusal of its own kind."""
    board.execute(FAULTS[fault])

    with capture_logs() as logs, pytest.raises(PauseGateUnavailable) as caught:
        bare.answered(board.ask())

    assert not isinstance(caught.value, WorkspacePaused)
    assert board.count("runs") == 0
    assert [e["event"] for e in logs if e["log_level"] == "warning"] == ["pause_gate_unavailable"]
    assert moved("office_run_refusals_total", reason="task_assigned", refusal="pause_gate_unavailable") == 1
    assert board.ask(agent="olga").outcome == "queued"


def test_a_missing_agent_is_refused_by_its_own_gate(board):
    """C12: a missing agent is the agent guard's to refuse, without a crash, while others are woken."""
    with pytest.raises(AgentNotFound):
        bare.answered(board.ask(agent="nobody"))

    assert board.count("runs") == 0
    assert board.ask(agent="olga").outcome == "queued"


def test_another_workspace_works_while_the_lookup_of_one_hangs(board, restricted):
    """C12: while the lookup of one workspace waits, then times out, wakes of another are admitted meanwhile."""
    restricted.stall(2, only="id = 'acme'")
    engine = restricted.engine(statement_timeout="5000", lock_timeout="600")

    with restricted.latch(), in_background() as start:
        stuck = start(admit, engine, board.wake(), instant=T0)
        until_blocked(board.engine, like=MARK[2])
        others = [admit(engine, board.wake(agent="olga", key=f"o{n}"), instant=T0).outcome for n in range(5)]
        assert not stuck.done()
        refused = stuck.result()

    assert refused.refusal == "pause_gate_unavailable"
    assert others == ["queued", "coalesced", "coalesced", "coalesced", "coalesced"]
    assert [row["agent_profile_id"] for row in board.runs()] == ["olga"]


def test_another_workspace_works_while_the_lookup_of_one_loses_its_backend(board, restricted):
    """C12, ADM-7.4: the connection that died was the one admission's own."""
    restricted.stall(2, only="id = 'acme'")
    engine = restricted.engine()

    with restricted.latch(), in_background() as start:
        stuck = start(admit, engine, board.wake(), instant=T0)
        until_blocked(board.engine, like=MARK[2])
        assert admit(engine, board.wake(agent="olga"), instant=T0).outcome == "queued"
        assert terminate_whoever_waits(board.engine, stuck, MARK[2]) == 2

    assert isinstance(stuck.exception(), DBAPIError)
    assert is_connection_lost(stuck.exception())
    assert admit(engine, board.wake(agent="olga", key="next"), instant=T0).outcome == "coalesced"


def test_the_retries_of_an_unreadable_pause_are_bounded():
    """C12, ADM-7.4: five, then it is an answer."""
    kind = retries.kind_of(PauseGateUnavailable("cannot read"))

    assert kind is retries.PAUSE_GATE
    assert [retries.left(kind, {kind.name: n}) for n in (0, 4, 5, 6)] == [True, True, False, False]
