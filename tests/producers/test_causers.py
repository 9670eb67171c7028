"""ADM-10.6: who asked for a wake, as `office why` names them: of every producer, driven by an agent where it can be."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import Connection
from sqlalchemy.orm import Session

from db.engine import autocommit
from office_tasks.execution import orders
from office_tasks.in_session import enqueue
from office_tasks.producers import bare
from office_tasks.producers.producer import Producer
from office_tasks.why import explain
from tests.producers.table import TABLE

BOB, THE_USER, THE_OFFICE, NOBODY = ("agent", "bob"), ("user", None), ("office", None), (None, None)
ASKED_BY = {
    Producer.QUEUE_RUN: NOBODY,
    Producer.SPAWN_RUN: NOBODY,
    Producer.ASSIGN_TASK: BOB,
    Producer.CREATE_TASK: BOB,
    Producer.TASK_CREATED: NOBODY,
    Producer.TASK_UPDATED: NOBODY,
    Producer.ONBOARD_TASK: THE_USER,
    Producer.ENTER_STEP: THE_USER,
    Producer.SET_TASK_STATUS: BOB,
    Producer.ADD_COMMENT: BOB,
    Producer.RECOVERY_SWEEP: THE_OFFICE,
    Producer.FAILED_RUN: ("agent", "ana"),
    Producer.MANUAL_RESUME: THE_USER,
}
# The pipeline called by itself commits no mutation, and a keyed spawn names its run: they have tests of their own.
OWED = [row for row in TABLE if (row.keyless or ("",))[-1] not in ("nil_mutation_generation", "nil_mutation_comment")
        and (row.producer, bool(row.keyless)) != (Producer.SPAWN_RUN, False)]  # fmt: skip


def asked_by(acts, wake_id: str) -> tuple[str | None, str | None]:
    """Return who asked for a wake, as the JSON says; its title says it too."""
    with autocommit(acts.engine) as connection:
        return told_of(connection, wake_id)


def told_of(connection: Connection, wake_id: str) -> tuple[str | None, str | None]:
    [told] = explain(connection, wake_id, lambda _queues: []).wakes
    causer = told.document()["asked_by"]
    named = " ".join(filter(None, causer.values())) or "nobody that is named"
    assert f", asked by {named} through {told.row['producer']}" in told.title
    return causer["type"], causer["id"]


def of_all(acts, wakes: Sequence[dict]) -> set[tuple[str | None, str | None]]:
    return {asked_by(acts, wake["id"]) for wake in wakes}


def test_every_producer_is_listed():
    assert set(ASKED_BY) == set(Producer)


@pytest.mark.parametrize("row", OWED, ids=str)
def test_who_asked_is_named_of_every_producer(acts, row):
    wakes = [wake for did in row.occurrences(acts) for wake in did.wakes]
    assert of_all(acts, wakes) == {ASKED_BY[row.producer]}


def test_an_absent_caller_is_the_user_to_every_producer(acts):
    """ADM-5.8, SES-5."""
    created = acts.create(assignee="ana")
    done = [created, acts.assign(agent="bob"), acts.status("blocked", comment="c9", body="so"), acts.status("todo")]
    done += [acts.enter(step="wait"), acts.enter(step="start", transition="t1")]
    assert [of_all(acts, did.wakes) for did in done] == [{THE_USER}] * 4 + [set(), {THE_USER}]


def test_the_author_of_a_comment_is_named_a_user_too(acts):
    acts.create(assignee="ana")
    assert of_all(acts, acts.comment("c1").wakes) == {("user", "ursula")}


def test_an_agent_that_spawned_is_known_by_its_run(acts):
    did = acts.ask(bare.spawn_run("s1", "run:1", "ana", "moon", {}, "a:b"))
    assert of_all(acts, did.wakes) == {("run", "run:1")}


def test_the_door_for_trusted_code_names_whom_it_says(acts):
    """In a transaction of its own too: nobody is no user there."""
    did = acts.ask(bare.queue_run("q1", "ana", "moon", {"actor_type": "user", "actor_id": "ursula"}))
    assert of_all(acts, did.wakes) == {("user", "ursula")}
    assert of_all(acts, acts.ask(bare.queue_run("q2", "ana", "sun", {}, "agent:r1:k")).wakes) == {NOBODY}
    with Session(acts.engine) as session:
        assert told_of(session.connection(), f"{enqueue(session, 'ana', 'star')}#1") == NOBODY


def test_who_orders_a_run_anew_is_not_who_asked_for_it_first(acts):
    acts.create()
    first = acts.assign(by="bob")
    acts.board.execute("UPDATE runs SET status = 'failed', finished_at = now()")
    orders.retry(acts.engine, "again", first.result["runs"][0])
    assert (asked_by(acts, first.wakes[0]["id"]), asked_by(acts, "again")) == (BOB, THE_USER)
