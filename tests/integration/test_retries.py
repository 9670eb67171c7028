"""What passes is retried, and nothing else: Postgres restarted or away, conflicts, a pause nobody can read."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from db import migrate
from db.engine import make_engine
from office_tasks import errors
from office_tasks.devstack import Postgres
from tests.integration.caller import events, retries
from tests.nodes.waiting import until

OURS = "datname = current_database() AND application_name = 'office' AND pid <> pg_backend_pid()"
# The shortest gaps: two seconds at most, half the visibility time-out less one.
QUICK = {"OFFICE_VISIBILITY_TIMEOUT": "6", "OFFICE_TIME_LIMIT": "5", "OFFICE_SOFT_TIME_LIMIT": "4"}

# A conflict for each insert of reason `always`, and for the first four of reason `twice` (two inserts an attempt:
# all at once, then gate by gate).
CONFLICTS = """
    CREATE SEQUENCE conflicts;
    CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.reason = 'always' OR (NEW.reason = 'twice' AND nextval('conflicts') <= 4) THEN
            RAISE EXCEPTION 'could not serialize' USING ERRCODE = '40001';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER conflict BEFORE INSERT ON runs FOR EACH ROW EXECUTE FUNCTION conflict();
"""


@pytest.fixture
def own_server():
    """A server of the test's own, to take away; durable, for what was committed must outlive its SIGKILL."""
    with Postgres() as postgres:
        yield postgres


@pytest.fixture
def database_url(request):
    """In a test that takes `own_server`, the database is there."""
    if "own_server" not in request.fixturenames:
        return request.getfixturevalue("shared_database_url")
    server = request.getfixturevalue("own_server")
    engine = make_engine(server.url)
    migrate.upgrade(engine)
    engine.dispose()
    return server.url


@pytest.fixture
def shared_database_url(make_database, template):
    """A database of the test's own on the server of the test run."""
    url = make_database(template)
    yield url.render_as_string(hide_password=False)
    make_database.drop(url)


@pytest.mark.office_worker(concurrency=4)
def test_postgres_restarts_under_idle_workers_then_stays_away(own_server, worker, caller):
    """ADM-7.4, C33: four warm children, a restart, 20 enqueues, 20 rows; an outage: nothing lost, growing gaps."""
    sent = [caller.send("queue_run", "ana", f"warm-{number}") for number in range(20)]
    assert {each.get(timeout=30)["outcome"] for each in sent} == {"queued"}
    own_server.restart()
    sent = [caller.send("queue_run", "ana", f"after-{number}") for number in range(20)]
    assert {each.get(timeout=30)["outcome"] for each in sent} == {"queued"}
    assert len(caller.board.runs()) == 40

    own_server.kill()
    before = len(worker.logs())
    sent = [caller.send("queue_run", "ana", f"away-{number}") for number in range(8)]
    until(lambda: all(len(retries(worker.logs(), each.id)) >= 5 for each in sent), 40, "five retries of each")
    own_server.start()
    assert {each.get(timeout=60)["outcome"] for each in sent} == {"queued"}
    assert len(caller.board.runs()) == 48
    log = worker.logs()[before:]
    for each in sent:
        gaps = retries(log, each.id)
        assert all(0.125 * 2**n <= gap <= min(9, 0.25 * 2**n) for n, gap in enumerate(gaps[:6]))
    assert log.count("retry: Retry in") <= 8 * 8
    assert len(events(log, "run_queued")) == 8


@pytest.mark.office_worker(concurrency=1)
def test_a_backend_that_is_ended_in_the_middle_of_an_admission(worker, caller):
    """ADM-7.4, C33: the call ends with exactly one row after its retry; the next five on the same child work."""
    caller.ask("queue_run", "ana", "warm")
    with caller.board.engine.connect() as lock:
        lock.execute(text("LOCK TABLE wakes IN ACCESS EXCLUSIVE MODE"))
        result = caller.send("queue_run", "ana", "cut")
        waiting = f"SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND {OURS}"
        first = until(lambda: caller.board.rows(waiting), what="the admission waits for the lock")
        caller.board.execute("SELECT pg_terminate_backend(:pid)", pid=first[0]["pid"])
        until(lambda: caller.board.rows(waiting) not in ([], first), what="it waits again, on another backend")
        lock.rollback()
    assert result.get(timeout=30)["outcome"] == "queued"
    assert [caller.ask("queue_run", "ana", f"next-{n}")["outcome"] for n in range(5)] == ["queued"] * 5
    assert len(caller.board.runs()) == len(caller.board.wakes()) == 7


@pytest.mark.office_worker(env=QUICK)
def test_how_often_each_kind_is_retried(worker, caller):
    """ADM-7.4, ADM-9.2, C12: a conflict 10 times, an unreadable pause 5 times and counted once, the others never."""
    caller.board.execute(CONFLICTS)
    caller.board.execute("UPDATE agents SET workspace_id = NULL WHERE id = 'bob'")
    always, twice, unread, missing, invalid = (
        caller.send("queue_run", "ana", "always"),
        caller.send("queue_run", "ana", "twice"),
        caller.send("queue_run", "bob", "manual_resume"),
        caller.send("queue_run", "nina", "manual_resume"),
        caller.send("queue_run", "", "manual_resume"),
    )
    assert twice.get(timeout=40)["outcome"] == "queued"
    kinds = {sent.id: type(caller.error_of(sent)) for sent in (always, unread, missing, invalid)}
    assert list(kinds.values()) == [
        errors.DatabaseError,
        errors.PauseGateUnavailable,
        errors.AgentNotFound,
        errors.InvalidInput,
    ]
    assert str(caller.error_of(always)) == "40001: SerializationFailure"
    log = worker.logs()
    counted = [len(retries(log, sent.id)) for sent in (always, twice, unread, missing, invalid)]
    assert counted == [10, 2, 5, 0, 0]
    assert all(gap <= 2 for gap in retries(log, always.id))
    assert len(events(log, "pause_gate_unavailable")) == 1
    rows = {wake["id"]: (wake["outcome"], wake["refusal"]) for wake in caller.board.wakes()}
    assert rows == {
        twice.id: ("queued", None),
        unread.id: ("none", "pause_gate_unavailable"),
        missing.id: ("none", "agent_not_found"),
    }
