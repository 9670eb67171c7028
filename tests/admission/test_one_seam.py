"""One function admits, and the insert is in one place."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError

from office_tasks import reasons
from office_tasks.producers.bare import enqueue, queue_run, spawn_run
from office_tasks.producers.creation import create_task
from office_tasks.producers.inbound import event, heard
from office_tasks.producers.producer import Producer
from office_tasks.settings import Settings
from tests.admission import source
from tests.admission.telling import ADMISSIONS, counted, listening
from tests.support import T0

THE_INSERT = "db/decide.py"
THE_CALLER = "office_tasks/admission/admit.py"
CONSTANTS = {"COALESCE_WINDOW", "DUPLICATE_LOOKBACK", "ALLOWANCE_WINDOW", "ASSIGNMENT_ALLOWANCE"}
REGISTRY = {
    "task_assigned", "task_comment", "task_mentioned", "task_blockers_resolved", "task_children_completed",
    "task_unblocked", "task_reopened", "task_reopened_via_comment", "task_review_requested", "agent_error",
    "manual_resume",
}  # fmt: skip


def test_runs_are_inserted_in_one_place():
    """ADM-1.1: the insert itself is looked for, ORM and SQL, in every module of ours."""
    found = [where for where, tree in source.modules() for _ in source.inserts_into_runs(tree)]
    assert found == [THE_INSERT]


@pytest.mark.parametrize(
    "second_door",
    [
        'connection.execute(text("INSERT INTO runs (id) VALUES (1)"))',
        'connection.execute(text("insert  into\\n public.runs (id) VALUES (1)"))',
        'SQL = f"""INSERT INTO runs ({", ".join(columns)}) VALUES (1)"""',
        'SQL = f"INSERT INTO {table} (id) VALUES (1)"',
        'SQL = "INSERT INTO %s (id) VALUES (1)" % table',
        'SQL = "INSERT INTO " + table',
        'SQL = "MERGE INTO runs USING x ON true WHEN NOT MATCHED THEN INSERT DEFAULT VALUES"',
        'cursor.copy("COPY runs (id) FROM STDIN")',
        "session.add(Run(id=1))",
        "session.add(models.runs.Run(id=1))",
        "connection.execute(insert(Run).values(id=1))",
        "connection.execute(postgresql.insert(db.models.Run).values(id=1))",
        "connection.execute(Run.__table__.insert().values(id=1))",
        'connection.execute(Base.metadata.tables["runs"].insert())',
        "session.bulk_insert_mappings(Run, rows)",
        "_insert(engine, Run, id=1)",
        'op.bulk_insert(table("runs"), rows)',
    ],
)
def test_a_second_door_would_be_seen(second_door):
    """ADM-1.1: the scan finds every way of writing the insert, so that a second one fails the test above."""
    assert list(source.inserts_into_runs(source.parse(second_door)))


@pytest.mark.parametrize(
    "harmless",
    [
        'SQL = "INSERT INTO wakes (id) SELECT id FROM runs"',
        'SQL = "UPDATE runs SET status = 1"',
        "select(Run).where(Run.id == 1)",
        "_insert(engine, Workspace, id=1)",
    ],
)
def test_what_inserts_no_run_is_left_alone(harmless):
    """ADM-1.1: the scan does not cry wolf."""
    assert not list(source.inserts_into_runs(source.parse(harmless)))


def test_admission_is_the_only_caller_of_the_insert():
    """ADM-1.1: nobody but the seam uses what writes a decision; what only reads one is anybody's."""
    callers = {where for where, tree in source.modules() if source.uses(tree, "db.decide", "admit_if_clear", "record")}
    assert callers == {THE_CALLER}


@pytest.fixture
def unreachable(board):
    """A board whose seam cannot be reached: the runs are somewhere else."""
    create_task(board.engine, "m0", "acme", "a task", task_id="T1", step_id="start", instant=T0)
    board.execute("ALTER TABLE runs RENAME TO elsewhere")
    return board


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: queue_run("w1", "ana", "task_assigned", {}, "k"),
        lambda engine: spawn_run("w1", "r1", "ana", "task_assigned", {}, "k"),
        lambda engine: heard(engine, "w1", event(Producer.TASK_CREATED, "T1", "ana", 1)),
    ],
    ids=["queue_run", "spawn_run", "task_created"],
)
def test_a_bare_producer_that_cannot_reach_the_seam_says_so(unreachable, ask):
    """ADM-1.2: it fails, and inserts nothing by itself."""
    with pytest.raises(DBAPIError):
        enqueue(unreachable.engine, ask(unreachable.engine), instant=T0)
    assert unreachable.count("elsewhere") == unreachable.count("wakes") == 0


def test_a_mutation_that_cannot_reach_the_seam_says_so(unreachable):
    """ADM-1.2, ADM-7.3: the mutation stands, its wake stays owed, and nothing is inserted behind the seam's back."""
    more = {"task_id": "T2", "step_id": "start", "assignee_id": "ana"}
    result = create_task(unreachable.engine, "m1", "acme", "another task", instant=T0, **more)
    assert result["runs"] == []
    assert [(wake["state"], wake["outcome"]) for wake in result["wakes"]] == [("owed", "none")]
    assert unreachable.count("elsewhere") == 0
    assert unreachable.wakes()[0]["last_error"].startswith("42P01")


def test_the_windows_and_the_allowance_are_declared_once():
    """ADM-1.3: each constant gets its value in one module, the tests' included."""
    assigned = [
        (name, where)
        for where, tree in source.modules("db", "office_tasks", "recovery", "tests", "bench")
        for name in source.numbers_named(tree)
        if name in CONSTANTS
    ]
    assert sorted(assigned) == sorted((name, "office_tasks/admission/windows.py") for name in CONSTANTS)


def test_no_statement_restates_a_window():
    """ADM-1.3: what the gates read and write holds no interval of its own, and the gates no duration."""
    for where, tree in source.modules("db/facts.py", "db/decide.py", "db/clock.py", "office_tasks/admission"):
        if where.endswith("windows.py"):
            continue
        assert not [sql for sql in source.strings(tree) if "interval '" in sql.lower()], where
        assert "timedelta" not in source.called_names(tree), where


def test_the_windows_are_not_settings():
    """ADM-1.3: no setting has a word in them, and the allowance is at least 1."""
    from office_tasks.admission import ASSIGNMENT_ALLOWANCE

    assert not [name for name in Settings.model_fields if "window" in name or "allowance" in name or "lookback" in name]
    assert ASSIGNMENT_ALLOWANCE >= 1


def test_the_registry_of_reasons():
    """ADM-1.4: the reasons, declared once."""
    assert reasons.REASONS == REGISTRY
    assert [where for where, tree in source.modules() if "task_review_requested" in source.strings(tree)] == [
        "office_tasks/reasons.py"
    ]


def test_a_reason_outside_the_registry_is_admitted_and_counted_as_custom(acme):
    """ADM-1.4: later producers may bring their own reason."""
    with listening() as told:
        answer = acme.ask(reason="moon_phase", key="k")
    assert answer.outcome == "queued"
    assert acme.run(answer.run_id)["reason"] == "moon_phase"
    assert told.moved == {counted(ADMISSIONS, reason="custom", outcome="queued"): 1}
