"""R07: writers over the same rows in opposite order: no call is lost, and a deadlock is retried to one row."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from sqlalchemy import text

from db.errors import is_conflict
from office_tasks import retries
from office_tasks.admission import admit
from tests.faults.waits import in_background, until_blocked
from tests.support import T0

ROWS = 20
ROUNDS = 100
TOUCH = text("UPDATE runs SET result = to_jsonb(coalesce(result, '0')::int + 1) WHERE id = :id")
TOUCH_IN_TURN = """
    CREATE FUNCTION touch(ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$ DECLARE one uuid; BEGIN
    FOREACH one IN ARRAY ids LOOP
        UPDATE runs SET result = to_jsonb(coalesce(result, '0')::int + 1) WHERE id = one;
    END LOOP; END $$"""
PATIENCE = {"deadlock_timeout": "10"}


def as_celery_would(call, *args):
    """Call again while Celery's policy says that the failure passes (ADM-7.4); return the result and the tries."""
    counts: Counter[str] = Counter()
    while True:
        try:
            return call(*args), counts
        except Exception as error:
            kind = retries.kind_of(error)
            if kind is None or not retries.left(kind, counts):
                raise
            counts[kind.name] += 1


def test_two_writers_in_opposite_order(board, make_test_engine):
    """R07: 100 rounds of two transactions over the same 20 runs: every round lands, a deadlock costs a retry."""
    # Only one of them looks for deadlocks early, and so loses them: without the gaps of Celery's policy, two that lose
    # in turn could go on for ever.
    engines = [make_test_engine(session=PATIENCE), make_test_engine()]
    ids = [board.ask(payload={"task_id": f"T{n}"}).run_id for n in range(ROWS)]
    board.execute(TOUCH_IN_TURN)
    barrier = threading.Barrier(2)

    def write(engine, order: list) -> int:
        with engine.begin() as connection:
            for half in (order[: ROWS // 2], order[ROWS // 2 :]):
                connection.execute(text("SELECT touch(:ids)"), {"ids": half})
        return 1

    def rounds(engine, order: list) -> Counter:
        total: Counter[str] = Counter()
        for _ in range(ROUNDS):
            barrier.wait(30)
            done, counts = as_celery_would(write, engine, order)
            total.update(counts)
            total["done"] += done
        return total

    with in_background() as start:
        results = [call.result() for call in [start(rounds, engines[0], ids), start(rounds, engines[1], ids[::-1])]]

    assert [result["done"] for result in results] == [ROUNDS, ROUNDS]
    assert {row["result"] for row in board.runs()} == {2 * ROUNDS}, "no write was lost, none done twice"
    assert sum(result["conflict"] for result in results) > 0, "they did deadlock"


def test_merges_against_a_writer_in_opposite_order(board, make_test_engine):
    """R07: admission holds one run's row at a time, so beside a writer of many rows it is never half of a deadlock."""
    engine = make_test_engine(pool_size=3, session=PATIENCE)
    ids = [board.ask(payload={"task_id": f"T{n}"}).run_id for n in range(ROWS)]
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with engine.begin() as connection:
                for run_id in ids[::-1]:
                    connection.execute(TOUCH, {"id": run_id})

    def merge() -> list:
        wakes = [board.wake(payload={"task_id": f"T{n % ROWS}"}) for n in range(ROUNDS)]
        return [as_celery_would(lambda wake=wake: admit(engine, wake, instant=T0)) for wake in wakes]

    with in_background() as start:
        writer = start(write)
        merged = [answer for call in [start(merge), start(merge)] for answer in call.result()]
        stop.set()
        writer.result()

    assert {str(answer.outcome) for answer, _ in merged} == {"coalesced"}
    assert sum(counts["conflict"] for _, counts in merged) == 0
    assert {row["coalesced_count"] for row in board.runs()} == {1 + 2 * ROUNDS // ROWS}


@pytest.mark.parametrize("victim", ["admission", "the other"])
def test_an_admission_that_deadlocks_is_retried_to_one_row(board, make_test_engine, victim):
    """R07, ADM-7.4: whoever Postgres lets lose, the wake ends as one merge of one run, and one row of its own."""
    # A session looks for a deadlock once, that long after it began to wait, and loses when it finds one. The
    # admission waits first: to lose it must look late enough to find the other waiting as well.
    patience = {"admission": ("1500", "20000"), "the other": ("20000", "10")}[victim]
    engine, others = (
        make_test_engine(session={"deadlock_timeout": value, "lock_timeout": "9000"}) for value in patience
    )
    target = board.ask(payload={"task_id": "T1"})
    wake = board.wake(wake_id="w1", payload={"task_id": "T1"})

    with others.connect() as other, in_background() as start:
        # The other holds the wake's id and then wants the run that the merge has locked: opposite to `wake, then run`.
        other.execute(
            text(
                "INSERT INTO wakes (id, reason, agent_profile_id, payload, keyless_cause, producer, requested_at, "
                "state, outcome, refusal, decided_at) VALUES ('w1', 'r', 'ana', '{}', 'by_design', 'test', now(), "
                "'decided', 'none', 'agent_not_wakeable', now())"
            )
        )
        call = start(as_celery_would, lambda: admit(engine, wake, instant=T0))
        until_blocked(board.engine)
        closing = start(lambda: other.execute(TOUCH, {"id": target.run_id}) and other.rollback())
        answer, counts = call.result()
        if victim == "the other":
            assert is_conflict(closing.exception())

    assert (answer.outcome, answer.run_id) == ("coalesced", target.run_id)
    assert counts["conflict"] == (1 if victim == "admission" else 0)
    assert board.run(target.run_id)["coalesced_count"] == 2
    assert board.count("wakes") == 2
