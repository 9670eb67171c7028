"""The event subscriber: it converges with the mutation that it reports, and changes nothing."""

from __future__ import annotations

import pytest

from office_tasks.errors import AgentNotFound, InvalidInput
from office_tasks.producers.after import admit_owed, stored_wakes
from office_tasks.producers.producer import Producer
from tests.admission.telling import listening
from tests.support import after

both = pytest.mark.parametrize("producer", [Producer.TASK_CREATED, Producer.TASK_UPDATED])


@pytest.fixture
def owing(acts):
    """An assignment of T1 to ana whose wake is still owed: the workspace was paused for that moment."""
    acts.create()
    acts.board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    acts.owing = acts.assign(at=after(hours=1))
    acts.board.execute("DELETE FROM pauses")
    [acts.owed] = stored_wakes(acts.engine, acts.owing.result["mutation_id"])
    return acts


@both
@pytest.mark.parametrize("apart", [0, 4, 6, 3600], ids="{} s apart".format)
@pytest.mark.parametrize("first", ["reaction", "event"])
def test_one_occurrence_seen_by_both_producers_is_one_run(owing, producer, first, apart):
    """PRO-3.2: the identical key and one run, in either order, at once, in the window and outside it."""

    def reaction(at):
        answer = admit_owed(owing.engine, owing.owed, at)
        return answer.key, str(answer.run_id)

    def event(at):
        heard = owing.hear(producer, assignee="ana", generation=1, at=at).result
        return heard["key"], heard["run_id"]

    in_order = (reaction, event) if first == "reaction" else (event, reaction)
    one, other = (deliver(after(hours=2, seconds=n * apart)) for n, deliver in enumerate(in_order))
    assert one == other
    assert one[0] == "task_assigned:T1:ana:1"
    assert owing.board.count("runs") == 1


def test_an_update_without_an_assignee_wakes_nobody(acts):
    """PRO-3.2: whatever generation comes with it, and though the task has a runner; nothing is written."""
    acts.create(assignee="ana")
    for generation in (None, 1, 2):
        for assignee in (None, ""):
            assert acts.hear(assignee=assignee, generation=generation).result == "no_assignee"
    assert acts.board.count("wakes") == 1


def test_a_creation_without_an_assignee_wakes_the_stored_runner(acts):
    """PRO-3: keyless though a generation is given: it may be another assignment's than the stored runner's."""
    acts.create(assignee="ana")
    did = acts.hear(Producer.TASK_CREATED, generation=1)
    assert [(wake["agent_profile_id"], wake["key"]) for wake in did.wakes] == [("ana", None)]


@both
@pytest.mark.parametrize("task", ["nowhere", "", None])
def test_an_unknown_or_empty_task_is_a_logged_no_op(acts, producer, task):
    """PRO-3.2: `none`, said at info, nothing written."""
    with listening() as told:
        assert acts.hear(producer, task, "ana", 1).result == "unknown_task"
    assert [(entry["event"], entry["log_level"]) for entry in told.logged] == [("wake_withheld", "info")]
    assert acts.board.count("wakes") == acts.board.count("runs") == 0


MALFORMED = {
    "a task that is no text": {"task": 7},
    "a task that is a list": {"task": ["T1"]},
    "a blank task": {"task": "  "},
    "a task with NUL": {"task": "a\0"},
    "a task that is too long": {"task": "t" * 256},
    "an assignee that is no text": {"assignee": 7},
    "an assignee that is an object": {"assignee": {"id": "ana"}},
    "a blank assignee": {"assignee": " "},
    "a negative generation": {"generation": -1},
    "a generation as text": {"generation": "1"},
    "an empty generation": {"generation": ""},
    "a fractional generation": {"generation": 1.5},
    "a whole float": {"generation": 1.0},
    "a generation that is true": {"generation": True},
    "a generation that is false": {"generation": False},
    "a generation over the column": {"generation": 2**63},
    "a generation in a list": {"generation": [1]},
}


@both
@pytest.mark.parametrize("wrong", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_event_is_an_error(acts, producer, wrong):
    """PRO-3.2: `InvalidInput`, never a no-op, known task or not; nothing written."""
    acts.create()
    for task in ("T1", "nowhere"):
        with pytest.raises(InvalidInput):
            acts.hear(producer, **{"task": task, "assignee": "ana", "generation": 1, **wrong})
    assert acts.board.count("wakes") == acts.board.count("runs") == 0


@both
@pytest.mark.parametrize("generation", [-1, "1", 1.0, True])
def test_a_malformed_event_is_an_error_at_the_celery_task(office, board, producer, generation):
    """PRO-3.2, ADM-9.1: and is counted as the invalid input that it is."""
    from office_tasks import task_created, task_updated

    ask = task_created if producer is Producer.TASK_CREATED else task_updated
    with listening() as told, pytest.raises(InvalidInput):
        ask("T1", "ana", generation)
    assert board.count("wakes") == 0
    assert {labels for name, labels in told.moved if name == "office_run_refusals_total"} == {
        (("reason", "task_assigned"), ("refusal", "invalid"))
    }


@both
def test_an_assignee_that_is_no_agent_is_refused_by_the_first_gate(acts, producer):
    """PRO-3, ADM-7.3: a typed error, and no run."""
    acts.create()
    with pytest.raises(AgentNotFound):
        acts.hear(producer, assignee="ghost", generation=1)
    assert acts.board.count("runs") == 0


@both
def test_an_assignee_of_another_workspace_is_refused(acts, producer):
    """PRO-3: an event moves nobody across workspaces: `InvalidInput`, nothing written."""
    from office_tasks import admin

    admin.create_workspace(acts.engine, "other")
    admin.create_agent(acts.engine, "other", "olga")
    acts.create()
    with pytest.raises(InvalidInput, match="olga"):
        acts.hear(producer, assignee="olga", generation=1)
    assert acts.board.count("wakes") == acts.board.count("runs") == 0
