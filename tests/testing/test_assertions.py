"""The assertions, and what they say when they fail."""

from __future__ import annotations

import pytest

from office_tasks import assign_task, pause_workspace, queue_run
from office_tasks.testing import assert_admitted, assert_not_admitted, assert_nothing_owed, assert_outcome


def said(failing, *args, **about):
    with pytest.raises(AssertionError) as error:
        failing(*args, **about)
    return str(error.value)


@pytest.fixture
def asked(studio):
    """One wake admitted, one merged into it, one of a task, one refused."""
    queue_run("ada", "stock_check", {"order": "o-1", "urgent": True})
    queue_run("ada", "stock_check", {"order": "o-2"})
    assign_task("door", "ben")
    queue_run.delay("cleo", "stock_check", [1, 2])
    return studio


def test_wakes_are_told_by_what_was_asked(asked):
    """ADM-7.1, ADM-7.3: each outcome, and a refusal by its name."""
    assert_admitted(asked, times=2)
    assert_admitted(asked, agent="ada", reason="stock_check", task=None, payload={"order": "o-1"})
    assert_admitted(asked, agent="ben", reason="task_assigned", task="door", payload={"task_id": "door"})
    assert_outcome(asked, "coalesced", payload={"order": "o-2"})
    assert_outcome(asked, "agent_not_found", payload=[1, 2])
    assert_outcome(asked, "none", agent="cleo")
    assert_not_admitted(asked, agent="cleo")
    assert_not_admitted(asked, payload={"order": None})
    assert_nothing_owed(asked)


def test_rows_come_back(asked):
    (admitted,) = assert_admitted(asked, agent="ada")
    (merged,) = assert_outcome(asked, "coalesced")
    assert (admitted["run_id"], admitted["payload"]["urgent"]) == (merged["run_id"], True)


def test_a_failure_lists_the_wakes_and_why(asked):
    """ADM-10.6: with the sentences of `office why`."""
    lines = said(assert_admitted, asked, agent="ada", payload={"order": "o-2"}).splitlines()
    assert lines[:2] == [
        "expected 1 queued wake (agent='ada', payload={'order': 'o-2'}), found 0",
        "The wakes of this office, at 2026-03-02 09:00:00:",
    ]
    assert [line for line in lines[2:] if not line.startswith("      ")] == [
        "  queued: 09:00:00 stock_check of ada, asked by nobody that is named through queue_run",
        "  coalesced: 09:00:00 stock_check of ada, asked by nobody that is named through queue_run",
        "  queued: 09:00:00 task_assigned of ben, asked by user through assign_task on task door",
        "  agent_not_found: 09:00:00 stock_check of cleo, asked by nobody that is named through queue_run",
    ]
    assert '      payload: {"order": "o-2"}' in lines
    assert any(line.startswith("      Gate 4 (coalesce) merged it into run ") for line in lines)
    assert "      Gate 1 (agent status) refused it (agent_not_found): there is no agent 'cleo'." in lines


def test_other_failures_say_what_was_expected(asked):
    assert said(assert_not_admitted, asked, task="door").startswith("expected no queued wake (task='door'), found 1\n")
    assert said(assert_admitted, asked, times=3).startswith("expected 3 queued wakes, found 2\n")


def test_nobody_was_asked(studio):
    assert said(assert_admitted, studio) == (
        "expected 1 queued wake, found 0\nNobody asked for a wake; what is not committed is not seen here."
    )


def test_what_is_owed_is_said_and_why(studio):
    pause_workspace("studio", "closed")
    assign_task("door", "ada")
    message = said(assert_nothing_owed, studio)
    assert message.startswith("expected no owed wake, found 1\n")
    assert "It is owed: workspace studio is paused since 2026-03-02 09:00:00 UTC (closed)." in message


def test_a_long_payload_is_cut(studio):
    queue_run("ada", "stock_check", {"text": "x" * 10_000})
    assert len(said(assert_not_admitted, studio)) < 1_000


def test_what_was_misspelt_is_no_failure_of_the_code_under_test(studio):
    with pytest.raises(ValueError, match="no outcome 'admitted'; there are queued, coalesced"):
        assert_outcome(studio, "admitted")
    with pytest.raises(TypeError, match="agent, reason, task, payload, not by agent_id"):
        assert_admitted(studio, agent_id="ada")
