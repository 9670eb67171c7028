"""The commands that set an office up and look at it."""

from __future__ import annotations

import pytest

from office_tasks import create_task
from tests.cli.said import as_json

pytestmark = pytest.mark.usefixtures("board")


def test_an_office_is_set_up_by_commands_alone(run):
    for words in (
        ("workspace", "create", "studio", "--name", "The studio", "--workflow", "studio-office"),
        ("agent", "create", "studio", "ada", "--role", "ceo", "--permission", "assign", "--permission", "approve"),
        ("step", "create", "studio", "doing", "--workflow", "studio-office", "--auto-start", "--primary-agent", "ada"),
        ("task", "create", "studio", "Paint the door", "--task", "door", "--step", "doing"),
    ):
        said = run(*words)
        assert (said.code, said.err) == (0, ""), words
    studio = {row["id"]: row for row in as_json(run, "workspace", "list")}["studio"]
    assert (studio["name"], studio["agents"], studio["tasks"], studio["paused"]) == ("The studio", 1, 1, False)
    (ada,) = as_json(run, "agent", "list", "--workspace", "studio")
    assert (ada["role"], ada["permissions"], ada["status"]) == ("ceo", ["assign", "approve"], "active")
    (doing,) = as_json(run, "step", "list", "--workspace", "studio")
    assert (doing["auto_start"], doing["primary_agent_id"]) == (True, "ada")
    (door,) = as_json(run, "task", "list", "--workspace", "studio")
    assert (door["title"], door["runner_id"], door["assignment_generation"]) == ("Paint the door", "ada", 0)


def test_creating_with_an_assignee_wakes_and_show_says_what_was_decided(run):
    said = run("task", "create", "acme", "Paint", "--task", "T1", "--step", "start", "--assignee", "ana")
    assert (said.code, said.out) == (0, "created task T1\nwake of ana: queued\n")
    shown = as_json(run, "task", "show", "T1")
    (wake,) = shown["wakes"]
    assert (shown["runner_id"], wake["outcome"], wake["gate"]) == ("ana", "queued", "insert")
    assert "insert" in run("task", "show", "T1").out


def test_assigning_says_what_came_of_the_wake(run):
    run("task", "create", "acme", "Paint", "--task", "T1", "--step", "start")
    assert run("task", "assign", "T1", "bob").out == "task T1 is assigned to bob\nwake of bob: queued\n"
    assert run("task", "assign", "T1", "bob").out.endswith("wake of bob: coalesced\n")
    assert run("task", "assign", "T1", "").out == "task T1 is unassigned\n"
    run("agent", "stop", "ana")
    refused = run("task", "assign", "T1", "ana")
    assert (refused.code, refused.out.splitlines()[1]) == (0, "wake of ana: none (agent_not_wakeable, decided)")
    result = as_json(run, "task", "assign", "T1", "bob", "--caller", "bob")
    assert (result["generation"], result["wakes"][0]["agent_profile_id"]) == (5, "bob")


def test_lists_for_people_have_a_head_and_a_line_for_each_row(run):
    said = run("agent", "list", "--workspace", "acme")
    assert [line.split() for line in said.out.splitlines()] == [
        ["id", "workspace_id", "name", "role", "status"],
        ["ana", "acme", "worker", "active"],
        ["bob", "acme", "worker", "active"],
    ]


def test_tasks_are_listed_the_newest_first_and_no_more_than_asked_for(run):
    for number in range(3):
        create_task("acme", "One of three", task_id=f"T{number}")
    assert [row["id"] for row in as_json(run, "task", "list", "--limit", "2")] == ["T2", "T1"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("task", "assign", "T9", "ana"), "there is no task 'T9'"),
        (("task", "show", "T9"), "there is no task 'T9'"),
        (("task", "create", "nowhere", "Paint"), "there is no workspace 'nowhere'"),
        (("task", "create", "acme", "Paint", "--assignee", "zoe"), "assignee_id: there is no agent 'zoe'"),
        (("agent", "create", "nowhere", "zoe"), "there is no workspace 'nowhere'"),
        (("agent", "create", "acme", "ana"), "there is already 'ana' among the agents"),
        (("agent", "create", "acme", "  "), "agent_profile_id: must not be empty or blank"),
        (
            ("agent", "create", "acme", "zoe", "--status", "asleep"),
            "status: must be one of active, paused, stopped, pending_approval, not 'asleep'",
        ),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_exit_1(run, words, sentence):
    said = run(*words)
    assert (said.code, said.out, said.err) == (1, "", f"office: {sentence}\n")


def test_an_agent_without_the_permission_is_refused(run):
    run("agent", "create", "acme", "rex", "--role", "reviewer")
    run("task", "create", "acme", "Paint", "--task", "T1", "--step", "start")
    said = run("task", "assign", "T1", "ana", "--caller", "rex")
    assert (said.code, said.err) == (1, "office: agent 'rex' (role 'reviewer') may not assign\n")


@pytest.mark.parametrize("words", [("task", "assign"), ("nothing",), ("task", "list", "--limit", "0")])
def test_wrong_usage_is_exit_2(run, words):
    said = run(*words)
    assert (said.code, said.out) == (2, "")
    assert "Usage: " in said.err
