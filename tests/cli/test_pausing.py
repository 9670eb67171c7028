"""Pausing, stopping and resuming agents and workspaces, from the command line."""

from __future__ import annotations

import pytest

from office_tasks import admin, create_task
from office_tasks.producers.assignments import assign_task
from recovery.sweep import sweep_once
from tests.admission.rows import store_run
from tests.cli.said import as_json, told

SENTENCE = {"pause": "paused", "stop": "stopped", "resume": "active"}


def status(board, agent="ana"):
    return board.rows("SELECT status FROM agents WHERE id = :id", id=agent)[0]["status"]


@pytest.mark.parametrize("verb", ["pause", "stop"])
def test_an_agent_that_is_set_aside_keeps_what_it_executes(run, board, verb):
    """REC-2.10, REC-2.2: the output says how many runs wait and how many executions go on; no run is touched."""
    waiting, running = store_run(board), store_run(board, status="claimed")
    before = [board.run(waiting), board.run(running)]
    assert told(run, "agent", verb, "ana") == [
        f"agent ana is {SENTENCE[verb]} (it was active): new wakes are refused",
        "runs that wait, and are not claimed until it is resumed: 1",
        "executions that go on: 1",
    ]
    assert status(board) == SENTENCE[verb]
    assert [board.run(waiting), board.run(running)] == before


@pytest.mark.parametrize("verb", SENTENCE)
def test_what_is_so_already_is_told(run, board, verb):
    """REC-2.10: idempotent: the second time it says `already`, and nothing else differs."""
    if verb != "resume":
        run("agent", verb, "ana")
    assert told(run, "agent", verb, "ana")[0].startswith(f"agent ana is {SENTENCE[verb]} already")
    again = as_json(run, "agent", verb, "ana")
    assert (again["changed"], again["was"], again["status"]) == (False, SENTENCE[verb], SENTENCE[verb])


@pytest.mark.parametrize("was", ["paused", "stopped", "pending_approval"])
def test_whatever_kept_an_agent_from_work_resuming_ends(run, board, was):
    """ADM-2.1: gate 1 lets it pass again."""
    admin.set_agent_status(board.engine, "ana", was)
    assert board.ask().refusal == "agent_not_wakeable"
    store_run(board, reason="other")
    assert told(run, "agent", "resume", "ana") == [
        f"agent ana is active (it was {was})",
        "runs that wait, for their turn or their retry: 1",
        "wakes that are owed, which the relay decides: 0",
        "tasks that it was refused meanwhile and never started, the sweep brings back",
    ]
    assert board.ask().outcome == "queued"


@pytest.mark.usefixtures("office")
def test_the_sweep_wakes_a_resumed_agent(run, board):
    """PRO-6.4, REC-1.2: a gate-1 refusal closed the wake; the task comes back by the sweep."""
    run("agent", "stop", "ana")
    made = create_task("acme", "Paint", task_id="T1", step_id="start", assignee_id="ana")
    assert (made["wakes"][0]["refusal"], made["wakes"][0]["state"]) == ("agent_not_wakeable", "decided")
    assert sweep_once(board.engine, "s1")["dispatched"] == 0
    run("agent", "resume", "ana")
    assert sweep_once(board.engine, "s2")["dispatched"] == 1


@pytest.mark.usefixtures("board")
def test_a_resumed_agent_of_a_paused_workspace_is_told_to_wait(run):
    """ADM-2.6: gate 2 comes after gate 1."""
    run("workspace", "pause", "acme")
    assert told(run, "agent", "resume", "ana")[1] == (
        "its workspace acme is paused: nothing of it starts until that is resumed"
    )


def test_a_paused_workspace_says_what_waits_and_what_goes_on(run, board):
    """REC-2.10: without --interrupt running executions go on."""
    store_run(board)
    running = store_run(board, agent="bob", status="claimed")
    first, *counts = told(run, "workspace", "pause", "acme", "--reason", "lunch")
    assert first.startswith("workspace acme is paused, since ")
    assert first.endswith(" UTC: lunch")
    assert counts == [
        "runs that wait until it is resumed: 1",
        "executions that go on (--interrupt asks them to stop): 1",
    ]
    assert board.run(running)["cancel_requested_at"] is None
    assert told(run, "workspace", "pause", "acme")[0].startswith("workspace acme is paused already, since ")
    [workspace] = [row for row in as_json(run, "workspace", "list") if row["id"] == "acme"]
    assert workspace["paused"] is True


def test_a_pause_that_interrupts_names_the_executions(run, board):
    """REC-2.10: they are asked, with the reason; asked again, nobody is left to ask."""
    running = store_run(board, status="claimed")
    assert told(run, "workspace", "pause", "acme", "--interrupt")[2] == f"executions asked to stop: {running}"
    row = board.run(running)
    assert (row["status"], row["cancel_reason"], row["cancel_requested_at"] is None) == (
        "claimed", "workspace_paused", False,
    )  # fmt: skip
    assert told(run, "workspace", "pause", "acme", "--interrupt")[2] == "executions asked to stop: none"
    assert as_json(run, "workspace", "pause", "acme", "--interrupt")["interrupted"] == []


@pytest.mark.usefixtures("office")
def test_a_resumed_workspace_takes_up_what_it_owed(run, board):
    """PRO-6.4: less what a later assignment made moot; told, and again `not paused`."""
    create_task("acme", "Paint", task_id="T1", step_id="start")
    run("workspace", "pause", "acme")
    for number, agent in enumerate(("ana", "bob"), start=1):
        assert assign_task(board.engine, f"m{number}", "T1", agent)["wakes"][0]["state"] == "owed"
    assert told(run, "workspace", "resume", "acme") == [
        "workspace acme is resumed",
        "wakes that it owed: 1 queued; made moot by later assignments: 1",
        "runs that wait, for their turn or their retry: 1",
    ]
    assert [(row["agent_profile_id"], row["status"]) for row in board.runs()] == [("bob", "queued")]
    assert told(run, "workspace", "resume", "acme")[0] == "workspace acme is not paused"
    again = as_json(run, "workspace", "resume", "acme")
    assert (again["changed"], again["replayed"], again["superseded"]) == (False, {}, 0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("agent", "pause", "zoe"), "there is no agent 'zoe'"),
        (("agent", "stop", " "), "agent_profile_id: must not be empty or blank"),
        (("agent", "resume", ""), "agent_profile_id: must not be empty or blank"),
        (("workspace", "pause", "nowhere"), "there is no workspace 'nowhere'"),
        (("workspace", "resume", "nowhere"), "there is no workspace 'nowhere'"),
        (("workspace", "pause", "acme", "--reason", "x" * 1025), "reason: is 1025 bytes of UTF-8, the limit is 1024"),
    ],
)
@pytest.mark.usefixtures("board")
def test_what_cannot_be_done_is_one_sentence_and_exit_1(run, words, sentence):
    said = run(*words)
    assert (said.code, said.out, said.err) == (1, "", f"office: {sentence}\n")
