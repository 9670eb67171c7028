"""Gate 6: the unique index has the last word on a key, and only on that."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError

from office_tasks.admission import DUPLICATE_LOOKBACK, admit
from tests.admission.rows import store_run
from tests.admission.telling import ADMISSIONS, DEDUP, KEYLESS, counted, listening
from tests.support import T0, Board, after

LONG_AGO = T0 - 2 * DUPLICATE_LOOKBACK


def test_a_queued_wake_is_a_row(acme):
    """ADM-6.1: what was asked is what the row holds."""
    answer = acme.ask(agent="bob", reason="task_mentioned", payload={"task_id": "T1", "x": [1]}, key="k")
    run = acme.run(answer.run_id)
    assert {name: run[name] for name in ("agent_profile_id", "reason", "payload", "idempotency_key", "task_id")} == {
        "agent_profile_id": "bob",
        "reason": "task_mentioned",
        "payload": {"task_id": "T1", "x": [1]},
        "idempotency_key": "k",
        "task_id": "T1",
    }
    assert (run["status"], run["coalesced_count"], run["attempt"], run["requested_at"]) == ("queued", 1, 0, T0)


@pytest.mark.parametrize("status", ["queued", "claimed", "finished", "failed"])
def test_a_key_is_unique_while_its_row_exists(acme, status):
    """ADM-6.1: a conflict on the index is `deduped`, names the row that holds the key, and is no error."""
    run_id = store_run(acme, LONG_AGO, key="k", agent="bob", status=status)
    answer = acme.ask(key="k")
    assert (answer.outcome, answer.gate, answer.run_id, answer.refusal) == ("deduped", "insert", run_id, None)
    assert acme.count("runs") == 1


def test_once_its_row_is_gone_a_key_is_free(acme):
    """ADM-6.1: unique while its row exists, no longer."""
    store_run(acme, LONG_AGO, key="k")
    acme.execute("DELETE FROM runs")
    assert acme.ask(key="k").outcome == "queued"


def test_no_key_conflicts_with_no_key(acme):
    """ADM-6.1: NULLs are free."""
    for reason in ("a", "b", "c"):
        assert acme.ask(reason=reason).outcome == "queued"
    assert acme.count("runs") == 3


def test_a_durable_duplicate_is_told(acme):
    """ADM-6.1, ADM-9.3: `kind=durable`, at warning, with key, reason and agent, and nothing else."""
    store_run(acme, LONG_AGO, key="k")
    with listening() as told:
        acme.ask(key="k")
    assert told.moved == {
        counted(ADMISSIONS, reason="task_assigned", outcome="deduped"): 1,
        counted(DEDUP, reason="task_assigned", kind="durable", queue="runs"): 1,
    }
    assert told.logged == [
        {
            "event": "run_deduplicated",
            "log_level": "warning",
            "key": "k",
            "reason": "task_assigned",
            "kind": "durable",
            "agent_profile_id": "ana",
        }
    ]


def test_a_durable_duplicate_is_not_called_an_anomaly(acme):
    """ADM-6.2: it is a race, a colliding key or a late redelivery: no word of the log takes it for a fault."""
    store_run(acme, LONG_AGO, key="k")
    with listening() as told:
        acme.ask(key="k")
    said = " ".join(f"{name} {value}" for entry in told.logged for name, value in entry.items()).lower()
    assert not [word for word in ("anomal", "error", "unexpected", "conflict", "violat", "fail", "bug") if word in said]


def test_another_error_of_the_insert_is_an_error(board):
    """ADM-6.1: any other database error is an error, moves no counter and is never swallowed; nothing is written."""
    board.execute("ALTER TABLE runs ADD CONSTRAINT no_mondays CHECK (reason <> 'task_assigned')")
    with listening() as told, pytest.raises(DBAPIError, match="no_mondays"):
        admit(board.engine, Board.wake(key="k"), instant=T0)
    assert (told.moved, told.logged) == ({}, [])
    assert board.count("runs") == board.count("wakes") == 0


def test_a_conflict_on_another_index_is_an_error(board):
    """ADM-6.1: only the index on the key makes a duplicate."""
    board.execute("CREATE UNIQUE INDEX one_per_agent ON runs (agent_profile_id)")
    board.ask(key="k1")
    with listening() as told, pytest.raises(DBAPIError, match="one_per_agent"):
        board.ask(after(minutes=1), key="k2")
    assert told.moved == {}
    assert board.count("runs") == board.count("wakes") == 1


def test_a_message_delivered_twice_admits_once(acme):
    """ADM-6.4: keyless too, the second answers what the first answered, and moves nothing."""
    first = acme.ask(wake_id="message")
    with listening() as told:
        second = acme.ask(after(days=2), wake_id="message")
    assert (second, second.fresh) == (first, False)
    assert (told.moved, told.logged) == ({}, [])
    assert acme.count("runs") == acme.count("wakes") == 1


def test_a_coalesced_message_delivered_twice_merges_once(acme):
    """ADM-6.4: the recorded answer, and no second `coalesced_count`."""
    first = acme.ask()
    merged = acme.ask(after(seconds=1), wake_id="message")
    assert acme.ask(after(seconds=2), wake_id="message") == merged
    assert acme.run(first.run_id)["coalesced_count"] == 2


def test_a_decided_wake_answers_as_it_was_decided_whatever_is_asked(acme):
    """ADM-10.3: its arguments change nothing, in the answer and in the rows."""
    first = acme.ask(wake_id="message", key="k", payload={"task_id": "T1"})
    again = acme.ask(after(days=2), wake_id="message", key="other", reason="task_mentioned", payload={"task_id": "T2"})
    assert again == first
    [wake] = acme.wakes()
    assert (wake["key"], wake["reason"], wake["payload"]) == ("k", "task_assigned", {"task_id": "T1"})
    assert acme.count("runs") == 1


def test_an_unaltered_keyless_wake_moves_two_counters(acme):
    """ADM-9.2: the admissions, and the keyless counter."""
    with listening() as told:
        acme.ask()
    assert told.moved == {
        counted(ADMISSIONS, reason="task_assigned", outcome="queued"): 1,
        counted(KEYLESS, reason="task_assigned", cause="by_design"): 1,
    }
