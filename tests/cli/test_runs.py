"""`office run`: looking at runs, cancelling and retrying them."""

from __future__ import annotations

import json
import uuid

import pytest

from tests.admission.rows import store_run

UNKNOWN = str(uuid.UUID(int=7))


def listed(run, *words, code=0):
    said = run(*words, "--json")
    assert (said.code, said.err) == (code, "")
    return json.loads(said.out)


@pytest.fixture
def runs(board):
    """Four runs, the oldest first."""
    return [
        str(run_id)
        for run_id in (
            store_run(board, payload={"task_id": "T1"}, status="failed"),
            store_run(board, agent="bob", payload={"task_id": "T1"}),
            store_run(board, payload=[None], status="claimed"),
            store_run(board, payload={"task_id": "T2"}, status="finished"),
        )
    ]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ((), [3, 2, 1, 0]),
        (("--task", "T1"), [1, 0]),
        (("--agent", "ana"), [3, 2, 0]),
        (("--status", "claimed"), [2]),
        (("--task", "T1", "--agent", "bob", "--status", "queued"), [1]),
        (("--task", "T1", "--status", "cancelled"), []),
        (("--limit", "2"), [3, 2]),
    ],
)
def test_runs_are_listed_the_newest_first(run, runs, words, found):
    """REC-2.1: by task, agent and status, and no more than asked for."""
    assert [row["id"] for row in listed(run, "run", "list", *words)] == [runs[number] for number in found]


def test_the_list_for_people_has_a_line_for_each_run(run, runs):
    lines = run("run", "list").out.splitlines()
    assert lines[0].split()[:5] == ["id", "agent_profile_id", "reason", "task_id", "status"]
    assert [line.split()[0] for line in lines[1:]] == runs[::-1]


def test_a_run_is_shown_with_all_that_is_asked_of_it(run, runs, board):
    """REC-2.1: state, attempts, times, session, what it carries and what came of it."""
    board.execute(
        "UPDATE runs SET attempt = 3, result = '{\"a\": [1]}', error = 'boom' WHERE id = CAST(:id AS uuid)", id=runs[2]
    )
    shown = listed(run, "run", "show", runs[2])
    assert set(shown) >= {
        "status", "attempt", "reason", "agent_profile_id", "task_id", "requested_at", "claimed_at", "finished_at",
        "scheduled_retry_at", "cancel_requested_at", "cancel_reason", "coalesced_count", "session_id", "payload",
        "result", "error", "idempotency_key", "lease_expires_at",
    }  # fmt: skip
    assert (shown["status"], shown["attempt"], shown["payload"], shown["error"]) == ("claimed", 3, [None], "boom")
    lines = {line.split()[0]: line.split()[1:] for line in run("run", "show", runs[2]).out.splitlines()}
    assert (lines["status"], lines["payload"], lines["finished_at"]) == (["claimed"], ["[null]"], [])
    assert lines["result"] == ['{"a":', "[1]}"]


def test_a_queued_run_is_cancelled(run, runs, board):
    """REC-2.10: and the second time it is over."""
    assert run("run", "cancel", runs[1]).out == f"run {runs[1]} is cancelled\n"
    assert (board.run(runs[1])["status"], board.run(runs[1])["cancel_reason"]) == ("cancelled", "operator")
    again = run("run", "cancel", runs[1])
    assert (again.code, again.err) == (0, "")


def test_a_running_execution_is_asked_to_stop(run, runs):
    """REC-2.10: told what happens if it does not, and that it was asked."""
    said = run("run", "cancel", runs[2])
    assert said.out == f"run {runs[2]} is asked to stop; if it does not within 30 s, its lease is withdrawn\n"
    assert run("run", "cancel", runs[2]).out.startswith(f"run {runs[2]} is asked to stop already, since ")
    again = listed(run, "run", "cancel", runs[2])
    assert (again["status"], again["changed"]) == ("claimed", False)


def test_a_retry_tells_its_outcome(run, runs, board):
    """REC-2.1, ADM-7.2: queued, then merged into that."""
    first = listed(run, "run", "retry", runs[0])
    assert (first["outcome"], first["retried"], first["reason"]) == ("queued", runs[0], "manual_resume")
    assert board.run(first["run_id"])["payload"] == {"task_id": "T1"}
    said = run("run", "retry", runs[0])
    assert said.out == (
        f"run {runs[0]} is retried: merged into run {first['run_id']}, which waits and has this payload now\n"
    )
    said = run("run", "retry", runs[3])
    new = listed(run, "run", "list", "--task", "T2")[0]["id"]
    assert said.out == f"run {runs[3]} is retried: run {new} is queued\n"


def test_a_retry_that_is_refused_says_why(run, runs):
    """ADM-2.1: a sentence and exit 1, and as JSON the refusal."""
    run("agent", "pause", "ana")
    said = run("run", "retry", runs[0])
    assert (said.code, said.out, said.err) == (1, "", "office: agent 'ana' is paused\n")
    assert listed(run, "run", "retry", runs[0], code=1) == {
        "outcome": "none", "refusal": "agent_not_wakeable", "message": "agent 'ana' is paused", "retried": runs[0],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("show", "T1"), "run_id: must be a UUID, not 'T1'"),
        (("cancel", ""), "run_id: must be a UUID, not ''"),
        (("retry", "x" * 300), "run_id: must be a UUID, not <text, 300 bytes>"),
        (("show", UNKNOWN), f"there is no run '{UNKNOWN}'"),
        (("cancel", UNKNOWN), f"there is no run '{UNKNOWN}'"),
        (("retry", UNKNOWN), f"there is no run '{UNKNOWN}'"),
        (
            ("list", "--status", "asleep"),
            "status: must be one of queued, claimed, finished, failed, cancelled, not 'asleep'",
        ),
    ],
)
@pytest.mark.usefixtures("board")
def test_what_cannot_be_done_is_one_sentence_and_exit_1(run, words, sentence):
    said = run("run", *words)
    assert (said.code, said.out, said.err) == (1, "", f"office: {sentence}\n")


@pytest.mark.usefixtures("board")
def test_what_is_not_over_is_not_retried(run, runs):
    """REC-2.1: one run of that work is enough."""
    for number, status in ((1, "queued"), (2, "claimed")):
        said = run("run", "retry", runs[number])
        assert (said.code, said.err) == (
            1, f"office: run {runs[number]} was not retried: it is {status}, and not over\n",
        )  # fmt: skip
