"""What an id holds is seen at a terminal, and not obeyed: ids are opaque text, which anybody may write."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from db.jobs import succeeded
from office_tasks import admin
from office_tasks.producers.creation import create_task
from office_tasks.producers.participants import add_participant
from office_tasks.producers.pauses import pause_workspace

SCREEN = "\x1b[31mred\x1b[2J"
FORGED = "T1\nruns, the newest first: none\r\x9b2K\u202e"
IDS = {"clears the screen": SCREEN, "forges a line": FORGED}
SEEN = {SCREEN: r"\x1b[31mred\x1b[2J", FORGED: r"T1\nruns, the newest first: none\r\x9b2K\u202e"}


@pytest.fixture(params=IDS.values(), ids=IDS)
def name(request, board, broker_away):
    """An id that a workspace, an agent, a step and its task bear, and whose workspace and agent are paused by it."""
    engine, name = board.engine, request.param
    with capture_logs():
        admin.create_workspace(engine, name, workflow_id="flow")
        admin.create_step(engine, name, name, workflow_id="flow", auto_start=True)
        admin.create_agent(engine, name, name)
        create_task(engine, "m1", name, name, task_id=name, step_id=name, assignee_id=name)
        add_participant(engine, "m2", name, name, "reviewer")
        admin.set_agent_status(engine, name, "paused")
        pause_workspace(engine, "m4", name, name)
    with engine.begin() as connection:
        succeeded(connection, "recovery.relay_owed", {name: 1})
    return name


def seen(said):
    """Return the lines, of which nothing but their ends moves a cursor."""
    lines = (said.out + said.err).split("\n")
    assert [line for line in lines if not line.isprintable()] == []
    return lines


@pytest.mark.parametrize("command", ["why", "task show", "session show", "seat list"])
def test_what_is_said_of_a_task(run, name, command):
    said = run(*command.split(), name)
    assert said.code == 0, said
    lines = seen(said)
    assert any(SEEN[name] in line for line in lines)
    assert "runs, the newest first: none" not in lines


@pytest.mark.parametrize("command", ["status", "doctor", "task list", "run list", "agent list", "step list"])
def test_what_is_said_of_the_office(run, name, command):
    said = run(*command.split())
    assert (SEEN[name] in "\n".join(seen(said))) == (command != "doctor")


def test_what_is_said_of_a_run(run, board, name):
    row = next(row for row in board.rows("SELECT id, agent_profile_id FROM runs") if row["agent_profile_id"] == name)
    assert f"agent_profile_id       {SEEN[name]}" in seen(run("run", "show", str(row["id"])))
    assert SEEN[name] in "\n".join(seen(run("why", str(row["id"]))))


@pytest.mark.parametrize(
    "words",
    [("workspace", "resume"), ("workspace", "pause"), ("agent", "resume"), ("agent", "stop"),
     ("agent", "delete", "--yes")],
    ids=" ".join,
)  # fmt: skip
def test_what_a_change_says(run, name, words):
    said = run(*words[:2], name, *words[2:])
    assert said.code == 0, said
    assert SEEN[name] in seen(said)[0]


@pytest.mark.parametrize("name", IDS.values(), ids=IDS)
@pytest.mark.usefixtures("board", "broker_away")
def test_what_is_not_there(run, name):
    for words in (("why", name), ("task", "assign", name, "ana"), ("agent", "pause", name)):
        said = run(*words)
        assert (said.code, len(seen(said))) == (1, 2), said
