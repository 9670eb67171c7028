"""Gate 5: what is counted, over which window, and that it holds no state of its own."""

from __future__ import annotations

import datetime as dt

import pytest

from office_tasks.admission import ALLOWANCE_WINDOW, ASSIGNMENT_ALLOWANCE, COALESCE_WINDOW
from office_tasks.producers.assignments import assign_task
from office_tasks.producers.creation import create_task
from tests.admission.rows import store_agent_assignments
from tests.support import T0, after

MICROSECOND = dt.timedelta(microseconds=1)
APART = COALESCE_WINDOW * 2


def spend(acme, at=T0, *, apart=APART, **more):
    """Spend the whole allowance of T1, one admitted wake after the other."""
    for n in range(ASSIGNMENT_ALLOWANCE):
        assert acme.assigned(at + n * apart, **more).outcome == "queued"
    return at + ASSIGNMENT_ALLOWANCE * apart


@pytest.mark.parametrize(
    ("age", "observed"),
    [(ALLOWANCE_WINDOW - MICROSECOND, 1), (ALLOWANCE_WINDOW, 0), (ALLOWANCE_WINDOW + MICROSECOND, 0)],
)
def test_the_window_is_half_open(acme, age, observed):
    """ADM-5.2: a row exactly 10 min old is out."""
    store_agent_assignments(acme, T0 - age)
    assert acme.assigned().observed == observed


def test_rows_at_one_instant_all_count(acme):
    """ADM-5.2: two rows at one instant both count, and one at the evaluation instant itself."""
    store_agent_assignments(acme, T0, T0)
    assert acme.assigned().observed == 2


@pytest.mark.parametrize("status", ["queued", "claimed", "finished", "failed"])
def test_a_row_counts_in_every_status(acme, status):
    """ADM-5.2: the count asks for no status."""
    for run_id in store_agent_assignments(acme, *[after(minutes=-1)] * ASSIGNMENT_ALLOWANCE):
        if status == "queued":
            acme.execute("UPDATE runs SET status = 'queued', finished_at = NULL WHERE id = :id", id=run_id)
        else:
            acme.set_status(run_id, status)
    assert acme.assigned().outcome == "rate_limited"


def test_the_allowance_is_of_the_task_alone(acme):
    """ADM-5.3: alternating between agents shares one allowance; another task has its own."""
    for n in range(ASSIGNMENT_ALLOWANCE):
        assert acme.assigned(T0 + n * APART, agent=("ana", "bob")[n % 2]).outcome == "queued"
    later = T0 + ASSIGNMENT_ALLOWANCE * APART
    assert {acme.assigned(later, agent=agent).outcome for agent in ("ana", "bob")} == {"rate_limited"}
    assert acme.assigned(later, task="T2").outcome == "queued"


def test_the_acting_agent_does_not_matter(acme):
    """ADM-5.3: nor does who assigns: the actor's id is no part of the count."""
    later = spend(acme)
    payload = {"task_id": "T1", "actor_type": "agent", "actor_id": "somebody else"}
    assert acme.ask(later, payload=payload).outcome == "rate_limited"


def test_only_admitted_wakes_consume(acme):
    """ADM-5.4: a merged and a deduplicated wake consume nothing."""
    acme.assigned(T0, key="k")
    assert acme.assigned(T0 + COALESCE_WINDOW / 2).outcome == "coalesced"
    assert acme.assigned(T0 + APART, key="k").outcome == "deduped"
    assert acme.assigned(T0 + APART).observed == 1


def test_the_allowance_comes_back(acme):
    """ADM-5.4: after 5 admits and any number of rate-limited wakes, 5 more are admitted once the first 5 age out."""
    end = spend(acme, apart=APART)
    for n in range(3 * ASSIGNMENT_ALLOWANCE):
        assert acme.assigned(end + n * APART).outcome == "rate_limited"
    last_admitted = end - APART
    assert acme.assigned(T0 + ALLOWANCE_WINDOW - MICROSECOND).outcome == "rate_limited"
    end = spend(acme, last_admitted + ALLOWANCE_WINDOW)
    assert acme.assigned(end).outcome == "rate_limited"


def test_it_comes_back_one_by_one(acme):
    """ADM-5.4: each admitted wake frees its place when it ages out, no sooner."""
    spend(acme)
    assert acme.assigned(T0 + ALLOWANCE_WINDOW).outcome == "queued"
    assert acme.assigned(T0 + ALLOWANCE_WINDOW, agent="bob").outcome == "rate_limited"
    assert acme.assigned(T0 + ALLOWANCE_WINDOW + APART, agent="bob").outcome == "queued"


def test_it_holds_no_state_of_its_own(acme):
    """ADM-5.5: deleting rows changes the count at once; the rows of `wakes` are no state of it either."""
    later = spend(acme)
    assert acme.assigned(later).outcome == "rate_limited"
    acme.execute("DELETE FROM runs WHERE id = (SELECT id FROM runs ORDER BY requested_at LIMIT 1)")
    assert acme.assigned(later).outcome == "queued"
    assert acme.assigned(later, agent="bob").outcome == "rate_limited"
    acme.execute("DELETE FROM wakes")
    assert acme.assigned(later, agent="bob").outcome == "rate_limited"
    acme.execute("DELETE FROM runs")
    assert acme.assigned(later).observed == 0


def test_keyed_or_keyless_makes_no_difference(acme):
    """ADM-5.6: keyed wakes are counted and limited like keyless ones."""
    for n in range(ASSIGNMENT_ALLOWANCE):
        assert acme.assigned(T0 + n * APART, key=f"k{n}" if n % 2 else None).outcome == "queued"
    later = T0 + ASSIGNMENT_ALLOWANCE * APART
    assert acme.assigned(later, key="new").outcome == "rate_limited"
    assert acme.assigned(later).outcome == "rate_limited"


def test_a_redelivered_key_does_not_consume_twice_and_a_keyless_wake_does(acme):
    """ADM-5.6: gate 3 decides before the count for a keyed wake; a keyless one enqueued twice is two."""
    acme.assigned(T0, key="k")
    acme.assigned(T0 + APART, key="k")
    assert acme.assigned(T0 + 2 * APART).observed == 1
    assert acme.assigned(T0 + 3 * APART).observed == 2


def test_a_duplicate_is_a_duplicate_even_when_the_allowance_is_spent(acme):
    """ADM-5.6: the redelivery of an admitted wake is deduplicated, not rate-limited."""
    acme.assigned(T0 - APART, key="k")
    store_agent_assignments(acme, *[T0] * ASSIGNMENT_ALLOWANCE)
    assert acme.assigned(after(minutes=1), key="k").outcome == "deduped"
    assert acme.assigned(after(minutes=1), key="k2").outcome == "rate_limited"


def test_users_are_never_limited(acme):
    """ADM-5.8: past a spent allowance, and any number of times."""
    later = spend(acme)
    for n in range(2 * ASSIGNMENT_ALLOWANCE):
        assert acme.assigned(later + n * APART, by="user").outcome == "queued"
    assert acme.assigned(later, agent="bob").observed == ASSIGNMENT_ALLOWANCE


@pytest.fixture
def worn_out(acme):
    """T1 stands on the auto-starting step, is bob's, and has used up its allowance."""
    create_task(acme.engine, "m0", "acme", "a task", task_id="T1", step_id="start", assignee_id="bob", instant=T0)
    store_agent_assignments(acme, *[after(minutes=1)] * ASSIGNMENT_ALLOWANCE)
    return acme


@pytest.mark.parametrize("nobody", ["", None])
def test_an_empty_acting_agent_is_the_user(worn_out, nobody):
    """ADM-5.8: an empty acting agent id classifies as `user`, and passes the spent allowance."""
    result = assign_task(worn_out.engine, "m1", "T1", "ana", nobody, after(minutes=2))
    assert result["wakes"][0]["outcome"] == "queued"
    assert worn_out.run(result["runs"][0])["payload"] == {"task_id": "T1", "actor_type": "user"}


def test_rate_limiting_never_undoes_the_change(worn_out):
    """ADM-5.9: the assignee stays, the generation stays bumped, the event stands, the mutation is settled."""
    result = assign_task(worn_out.engine, "m1", "T1", "ana", "bob", after(minutes=2))
    assert [wake["outcome"] for wake in result["wakes"]] == ["rate_limited"]
    assert (result["assignee_id"], result["previous_runner_id"], result["generation"]) == ("ana", "bob", 2)
    assert worn_out.rows("SELECT agent_profile_id FROM seats WHERE role = 'runner'") == [{"agent_profile_id": "ana"}]
    assert worn_out.rows("SELECT assignment_generation AS n FROM tasks") == [{"n": 2}]
    assert worn_out.rows("SELECT type, changed FROM events WHERE mutation_id = 'm1'") == [
        {"type": "task_assignee_changed", "changed": ["assignee"]}
    ]
    assert worn_out.rows("SELECT result FROM mutations WHERE id = 'm1'") == [{"result": result}]


def test_an_unassignment_produces_no_wake(worn_out):
    """ADM-5.10: neither limited nor counted."""
    result = assign_task(worn_out.engine, "m1", "T1", "", "bob", after(minutes=2))
    assert (result["wakes"], result["runs"], result["generation"]) == ([], [], 2)
    assert [wake["mutation_id"] for wake in worn_out.wakes()] == ["m0"]
    assert worn_out.assigned(after(minutes=2)).observed == ASSIGNMENT_ALLOWANCE
