"""Impossible rows are refused by the schema itself (8-engineering 5): each row is possible but for what is changed."""

from __future__ import annotations

import uuid

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from db.errors import driver_error
from db.models import Agent, Blocker, Comment, Delivery, Mutation, Pause, Run, Seat, Session, Task, Wake, Workspace
from tests.support import T0, after

TOKEN = uuid.UUID(int=7)
POSSIBLE = {
    Workspace: {"id": "w", "name": "w"},
    Agent: {"id": "a", "name": "a"},
    Task: {"id": "T1", "workspace_id": "w", "title": "t"},
    Run: {"id": TOKEN, "agent_profile_id": "a", "reason": "r", "payload": {}, "requested_at": T0},
    Session: {"id": TOKEN, "task_id": "T1", "agent_profile_id": "a"},
    Wake: {
        "id": "k", "reason": "r", "agent_profile_id": "a", "payload": {}, "keyless_cause": "by_design",
        "producer": "p", "requested_at": T0, "state": "owed", "mutation_id": "m",
    },
    Pause: {"workspace_id": "w", "paused_at": T0},
    Mutation: {"id": "m", "kind": "k", "actor_type": "user", "facts": {}, "committed_at": T0},
    Seat: {"id": TOKEN, "task_id": "T1", "role": "runner", "agent_profile_id": "a"},
    Blocker: {"task_id": "T1", "blocker_id": "T2"},
    Comment: {"id": "c", "task_id": "T1", "author_type": "user", "author_id": "u", "body": "b"},
    Delivery: {"id": "d", "task_name": "t", "deliveries": 2},
}  # fmt: skip
CLAIMED = {"status": "claimed", "lease_token": TOKEN, "lease_expires_at": T0}
DECIDED = {"state": "decided", "outcome": "queued", "run_id": TOKEN, "decided_at": T0, "gate": "insert"}

# A row's variants that are possible too, so that what follows is refused for its own sake.
ALSO_POSSIBLE = [
    (Run, {"scheduled_retry_at": T0}),
    (Run, CLAIMED),
    *[(Run, {"status": status, "finished_at": T0}) for status in ("finished", "failed", "cancelled")],
    (Run, {"idempotency_key": "k"}),
    (Session, {"state": "running"}),
    *[(Session, {"state": s, "ended_at": T0, "reason": "why"}) for s in ("completed", "failed", "cancelled")],
    (Wake, DECIDED),
    (Wake, DECIDED | {"mutation_id": None}),
    (Wake, DECIDED | {"outcome": "coalesced"}),
    (Wake, DECIDED | {"outcome": "deduped", "run_id": None}),
    (Wake, DECIDED | {"outcome": "rate_limited", "run_id": None, "observed": 5}),
    (Wake, DECIDED | {"outcome": "none", "run_id": None, "refusal": "poisoned"}),
    (Wake, {"state": "superseded", "decided_at": T0}),
    (Wake, {"key": "k", "keyless_cause": None}),
    (Task, {"id": "é" * 127}),
    (Pause, {"resumed_at": T0}),
    (Mutation, {"settled_at": T0, "result": {}}),
]

IMPOSSIBLE = [
    (Run, {"status": "lost"}, "ck_runs_status"),
    (Run, {"lease_token": TOKEN}, "ck_runs_status"),
    (Run, {"finished_at": T0}, "ck_runs_status"),
    (Run, CLAIMED | {"lease_token": None}, "ck_runs_status"),
    (Run, CLAIMED | {"lease_expires_at": None}, "ck_runs_status"),
    (Run, CLAIMED | {"scheduled_retry_at": T0}, "ck_runs_status"),
    (Run, CLAIMED | {"finished_at": T0}, "ck_runs_status"),
    (Run, {"status": "finished"}, "ck_runs_status"),
    (Run, {"status": "failed", "finished_at": T0, "lease_token": TOKEN}, "ck_runs_status"),
    (Run, {"coalesced_count": 0}, "ck_runs_counted_and_keyed"),
    (Run, {"idempotency_key": ""}, "ck_runs_counted_and_keyed"),
    (Session, {"state": "asleep"}, "ck_sessions_"),
    (Session, {"state": "completed"}, "ck_sessions_ended"),
    (Session, {"ended_at": T0}, "ck_sessions_ended"),
    (Session, {"reason": "why"}, "ck_sessions_only_ended_have_reasons"),
    (Wake, {"state": "dropped"}, "ck_wakes_state"),
    (Wake, {"outcome": "queued", "run_id": TOKEN}, "ck_wakes_state"),
    (Wake, {"decided_at": T0}, "ck_wakes_state"),
    (Wake, {"mutation_id": None}, "ck_wakes_state"),
    (Wake, {"state": "decided"}, "ck_wakes_state"),
    (Wake, DECIDED | {"decided_at": None}, "ck_wakes_state"),
    (Wake, DECIDED | {"state": "superseded"}, "ck_wakes_state"),
    (Wake, DECIDED | {"outcome": "perhaps"}, "ck_wakes_outcome"),
    (Wake, DECIDED | {"run_id": None}, "ck_wakes_outcome"),
    (Wake, DECIDED | {"outcome": "coalesced", "run_id": None}, "ck_wakes_outcome"),
    (Wake, DECIDED | {"outcome": "rate_limited"}, "ck_wakes_outcome"),
    (Wake, DECIDED | {"outcome": "none"}, "ck_wakes_outcome"),
    (Wake, {"key": "k"}, "ck_wakes_keyless_has_a_cause"),
    (Wake, {"keyless_cause": None}, "ck_wakes_keyless_has_a_cause"),
    (Task, {"id": ""}, "ck_tasks_id_bounded"),
    (Task, {"id": "é" * 128}, "ck_tasks_id_bounded"),
    (Task, {"status": "started"}, "ck_tasks_status"),
    (Task, {"assignment_generation": -1}, "ck_tasks_assignment_generation"),
    (Task, {"recovery_attempts": -1}, "ck_tasks_recovery_attempts"),
    (Task, {"parent_id": "T1"}, "ck_tasks_not_its_own_parent"),
    (Agent, {"status": "asleep"}, "ck_agents_status"),
    (Agent, {"id": ""}, "ck_agents_id_bounded"),
    (Workspace, {"recovery_lookback_hours": 0}, "ck_workspaces_recovery_lookback_hours"),
    (Workspace, {"recovery_lookback_hours": 721}, "ck_workspaces_recovery_lookback_hours"),
    (Pause, {"resumed_at": after(seconds=-1)}, "ck_pauses_resumed_after_paused"),
    (Mutation, {"settled_at": T0}, "ck_mutations_settled_has_result"),
    (Mutation, {"result": {}}, "ck_mutations_settled_has_result"),
    (Seat, {"task_id": None}, "ck_seats_somewhere"),
    (Blocker, {"blocker_id": "T1"}, "ck_blockers_not_itself"),
    (Comment, {"author_type": "robot"}, "ck_comments_author_type"),
    (Delivery, {"deliveries": 1}, "ck_deliveries_redelivered"),
]


def name(case) -> str:
    return f"{case[0].__tablename__}-{'-'.join(map(str, case[1]))}-{next(iter(case[1].values()), '')}"[:80]


@pytest.fixture
def put(connection):
    """Return a function that inserts a possible row, changed by what is given."""
    for model, row in ((Workspace, {}), (Task, {}), (Task, {"id": "T2"})):
        connection.execute(insert(model).values(**POSSIBLE[model] | row))

    def inserted(model, changed) -> None:
        row = POSSIBLE[model] | changed
        if model is Workspace or (model is Task and row["id"] == "T1" and "parent_id" not in row):
            row |= {"id": "other"}
        with connection.begin_nested() as savepoint:
            connection.execute(insert(model).values(**row))
            savepoint.rollback()

    return inserted


@pytest.mark.parametrize("case", [*((model, {}) for model in POSSIBLE), *ALSO_POSSIBLE], ids=name)
def test_a_possible_row_is_taken(put, case):
    """8-engineering 5: the rows that the refused ones differ from in one thing."""
    put(*case)


@pytest.mark.parametrize("case", IMPOSSIBLE, ids=name)
def test_an_impossible_row_is_refused(put, case):
    """8-engineering 5, ADM-8.2, ADM-10.1: by the check that is meant to refuse it."""
    model, changed, constraint = case

    with pytest.raises(IntegrityError) as caught:
        put(model, changed)

    assert driver_error(caught.value).sqlstate == "23514"
    assert driver_error(caught.value).diag.constraint_name.startswith(constraint)


def test_one_live_session_and_one_open_pause(connection):
    """The two things of which there is one at a time: refused by a unique index, as long as the first is not over."""
    connection.execute(insert(Workspace).values(**POSSIBLE[Workspace]))
    for model, other, over in (
        (Session, {"id": uuid.UUID(int=8)}, {"state": "completed", "ended_at": T0}),
        (Pause, {}, {"resumed_at": T0}),
    ):
        connection.execute(insert(model).values(**POSSIBLE[model]))
        with pytest.raises(IntegrityError) as caught, connection.begin_nested():
            connection.execute(insert(model).values(**POSSIBLE[model] | other))
        assert driver_error(caught.value).sqlstate == "23505"
        connection.execute(insert(model).values(**POSSIBLE[model] | other | over))
