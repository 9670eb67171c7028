"""The office that a test is given: the clock, what becomes of messages, the relay and the sweep."""

from __future__ import annotations

import datetime as dt

import pytest
from celery import Celery, chain
from celery.exceptions import NotRegistered
from kombu.exceptions import OperationalError
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from db import clock
from db.engine import make_engine
from office_tasks import (
    AgentNotFound,
    DatabaseError,
    InvalidInput,
    admin,
    app,
    assign,
    assign_task,
    create_task,
    enqueue,
    pause_workspace,
    queue_run,
    resume_workspace,
)
from office_tasks.admission import (
    ALLOWANCE_WINDOW,
    ASSIGNMENT_ALLOWANCE,
    COALESCE_WINDOW,
    DUPLICATE_LOOKBACK,
)
from office_tasks.office import Office
from office_tasks.testing import assert_admitted, assert_nothing_owed, assert_outcome, messages
from office_tasks.testing.trial import START, OfficeNotEmptied, TrialOffice

TICK = dt.timedelta(microseconds=1)


@pytest.fixture
def theirs(office_database_url):
    """An engine of the caller's own: none of ours."""
    engine = create_engine(office_database_url)
    yield engine
    engine.dispose()


class TestClock:
    def test_it_stands_still_until_it_is_moved(self, office):
        assert (office.clock.now, office.clock.now) == (START, START)
        assert office.clock.advance(minutes=10, seconds=1) == START + dt.timedelta(seconds=601) == office.clock.now

    def test_it_holds_on_a_connection_that_is_open_already(self, office, theirs):
        """ADM-2.3: one clock, in Postgres, for every connection to the database."""
        with theirs.connect() as connection:
            assert clock.now(connection) == START
            connection.commit()
            moved = office.clock.advance(days=2)
            assert clock.now(connection) == moved

    def test_a_sessions_own_setting_goes_first(self, office, theirs):
        with theirs.connect() as connection:
            connection.execute(text("SET office.now = '2031-05-06T07:08:09Z'"))
            assert clock.now(connection) == dt.datetime(2031, 5, 6, 7, 8, 9, tzinfo=dt.UTC)

    def test_an_instant_without_a_zone_is_none(self, office):
        with pytest.raises(ValueError, match="has no time zone"):
            office.clock.set(START.replace(tzinfo=None))

    def test_it_begins_anew(self, office):
        office.clock.advance(days=400)
        office.begin()
        assert office.clock.now == START


class TestWindows:
    def test_coalescing(self, studio):
        """ADM-4.2: within five seconds, not at five."""
        queue_run.delay("ada", "stock_check")
        studio.clock.set(START + COALESCE_WINDOW - TICK)
        queue_run.delay("ada", "stock_check")
        assert_outcome(studio, "coalesced")
        studio.clock.set(START + COALESCE_WINDOW)
        queue_run.delay("ada", "stock_check")
        assert_admitted(studio, times=2)

    def test_duplicates(self, studio):
        """ADM-3.2: within a day, not at a day; then the index decides (ADM-6.1)."""
        queue_run.delay("ada", "stock_check", None, "k")
        studio.clock.set(START + DUPLICATE_LOOKBACK - TICK)
        queue_run.delay("ada", "stock_check", None, "k")
        studio.clock.advance(microseconds=1)
        queue_run.delay("ada", "stock_check", None, "k")
        gates = [row["gate"] for row in assert_outcome(studio, "deduped", times=2)]
        assert gates == ["recent_duplicate", "insert"]

    def test_the_allowance(self, studio):
        """ADM-5.4: five within ten minutes, and five again when those have aged out."""
        for _ in range(2):
            for taker in ("ada", "ben") * 3:
                assign_task.delay("door", taker, "ada")
                studio.clock.advance(seconds=10)
            studio.clock.advance(seconds=ALLOWANCE_WINDOW.total_seconds())
        assert_admitted(studio, task="door", reason="task_assigned", times=2 * ASSIGNMENT_ALLOWANCE)
        assert_outcome(studio, "rate_limited", agent="ben", times=2)


class TestMessages:
    def test_the_caller_hears_the_answer_or_the_error(self, studio):
        """ADM-7.3: as from a worker, the error comes with `.get()` and not with `.delay()`."""
        assert queue_run.delay("ada", "stock_check").get()["outcome"] == "queued"
        sent = queue_run.delay("nobody", "stock_check")
        with pytest.raises(AgentNotFound):
            sent.get()
        assert_outcome(studio, "agent_not_found", agent="nobody")

    def test_an_answer_is_found_by_its_id(self, studio):
        sent = queue_run.apply_async(("ada", "stock_check"), task_id="m-1")
        assert app.AsyncResult("m-1").get(timeout=1) == sent.get()

    def test_a_redelivery_answers_what_the_first_did(self, studio):
        """ADM-6.4: one message, twice."""
        first, second = (queue_run.apply_async(("ada", "stock_check"), task_id="m-1").get() for _ in range(2))
        assert first == second
        assert len(studio.wakes) == 1

    def test_arguments_travel_as_json(self, studio):
        queue_run.delay("ada", "stock_check", {"of": (1, 2)})
        assert_admitted(studio, payload={"of": [1, 2]})
        with pytest.raises(InvalidInput, match="cannot be sent as JSON"):
            queue_run.delay("ada", "stock_check", {"of": object()})

    @pytest.mark.parametrize("sender", ["theirs", "ours"])
    def test_by_name(self, studio, sender):
        """Celery's own eager mode passes over what is sent by name, and would ask a broker."""
        by = {"theirs": Celery("till", set_as_current=False), "ours": app}[sender]
        sent = by.send_task("office.assign_task", ["door", "ada"], queue="admission")
        assert sent.get()["wakes"][0]["outcome"] == "queued"
        by.signature("office.queue_run", ("ben", "stock_check")).delay()
        assert_admitted(studio, agent="ben")

    def test_other_tasks_go_their_own_way(self, studio):
        till = Celery("till", broker="memory://", backend="cache+memory://", set_as_current=False)
        for name in ("till.count", "celery.backend_cleanup"):
            assert till.send_task(name).state == "PENDING"
        till.close()

    def test_a_name_that_is_misspelt(self, studio):
        """A worker would drop it, and nobody would hear of it."""
        with pytest.raises(NotRegistered, match="assign_tsk"):
            Celery("till", set_as_current=False).send_task("office.assign_tsk", ["door", "ada"])

    def test_in_a_chain(self, studio):
        asked = chain(queue_run.si("ada", "first"), queue_run.si("ben", "second"))
        asked.apply_async()
        assert [row["reason"] for row in assert_admitted(studio, times=2)] == ["first", "second"]

    def test_in_a_session_of_the_callers(self, studio, theirs):
        """PRO-6.3: it follows the commit at once, and only the commit."""
        with Session(theirs) as session:
            assign(session, "door", "ada")
            enqueue(session, "ben", "stock_check")
            session.rollback()
            assert studio.wakes == []
            assign(session, "door", "ada")
            enqueue(session, "ben", "stock_check")
            session.commit()
        assert_admitted(studio, agent="ada", task="door")
        assert_admitted(studio, agent="ben", task=None)
        assert_nothing_owed(studio)

    def test_the_broker_is_away(self, studio, theirs):
        """PRO-6.5, PRO-6.3: a message is refused; what a transaction committed is owed, and the relay decides it."""
        with studio.broker_away(), Session(theirs) as session:
            for send in (queue_run.delay, lambda *args: app.send_task("office.queue_run", args)):
                with pytest.raises(OperationalError):
                    send("ada", "stock_check")
            enqueue(session, "ben", "stock_check")
            session.commit()
        assert_outcome(studio, "owed", agent="ben")
        assert studio.relay()["settled"] == 0, "the fast path has its time first"
        studio.clock.advance(seconds=2)
        assert studio.relay()["settled"] == 1
        assert_admitted(studio, agent="ben")
        queue_run.delay("ada", "stock_check")
        assert_admitted(studio, agent="ada")

    def test_the_database_is_gone(self, studio, office_database_url, monkeypatch):
        """ADM-7.4: what would be retried without limit ends here, with the sentence that a caller would wait for."""
        nowhere = make_engine(office_database_url + "_gone")
        monkeypatch.setitem(app.__dict__, "office", Office(app.office.settings, nowhere))
        with pytest.raises(DatabaseError, match="does not exist"):
            queue_run.delay("ada", "stock_check").get()


class TestRecovery:
    def test_a_pause_leaves_it_owed(self, studio):
        """PRO-6.4: and resuming admits it."""
        pause_workspace.delay("studio", "closed")
        assign_task.delay("door", "ada")
        assert_outcome(studio, "owed", task="door")
        resume_workspace.delay("studio")
        assert_admitted(studio, task="door")
        assert_nothing_owed(studio)

    def test_the_sweep_wakes_what_never_started(self, office):
        """REC-1: an agent that was stopped when it was assigned."""
        office.workspace("studio", workflow_id="desk")
        office.agent("studio", "ada", status="stopped")
        create_task("studio", "Paint the door", task_id="door", workflow_id="desk", assignee_id="ada")
        assert_outcome(office, "agent_not_wakeable")
        admin.set_agent_status(office.engine, "ada", "active")
        office.clock.advance(minutes=10)
        assert office.sweep()["dispatched"] == 1
        (row,) = assert_admitted(office, agent="ada", task="door")
        assert row["producer"] == "recovery_sweep"


class TestEmptying:
    def test_an_office_is_empty_and_names_may_come_again(self, studio):
        queue_run.delay("ada", "stock_check", None, "k")
        studio.begin()
        assert studio.wakes == []
        studio.workspace("studio")
        studio.agent("studio", "ada")
        queue_run.delay("ada", "stock_check", None, "k")
        assert_admitted(studio)

    def test_a_row_of_theirs_that_refers_to_the_office(self, studio, theirs):
        with theirs.begin() as connection:
            connection.execute(text("CREATE TABLE jobs (task_id text REFERENCES tasks)"))
            connection.execute(text("INSERT INTO jobs VALUES ('door')"))
        with pytest.raises(OfficeNotEmptied, match=r'"jobs".*delete rows of yours'):
            studio.begin()
        with theirs.begin() as connection:
            connection.execute(text("DROP TABLE jobs"))

    def test_a_transaction_that_is_still_open(self, studio, theirs, office_database_url):
        impatient = make_engine(office_database_url, session={"lock_timeout": "50"})
        with theirs.connect() as connection:
            connection.execute(text("SELECT FROM tasks FOR UPDATE"))
            with pytest.raises(OfficeNotEmptied, match=r"lock timeout.*Close sessions"):
                TrialOffice(impatient).begin()
        impatient.dispose()


def test_the_app_is_left_as_it_was():
    """Tests of a project that do without the fixture meet the app that they configured."""

    def standing():
        task = app.tasks["office.queue_run"]
        return app.conf.task_always_eager, app.conf.broker_url, task.store_eager_result, app.backend, Celery.send_task

    before = standing()
    with pytest.MonkeyPatch.context() as patch:
        messages.divert(patch)
        assert standing()[0]
    assert standing() == before
