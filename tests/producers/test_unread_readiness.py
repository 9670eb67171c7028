"""A readiness that cannot be read is no readiness: the whole mutation fails."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import DBAPIError

from db.errors import sqlstate
from office_tasks.errors import DatabaseError
from tests.faults.gates import Restricted
from tests.producers.acts import Acts


@pytest.fixture
def role(board, make_test_engine):
    """T1, driven by ana, waits for B1, its child; and a role that will not be able to read that."""
    acts = Acts(board)
    acts.create(assignee="ana")
    acts.create("B1", parent_id="T1")
    acts.block("T1", "B1")
    restricted = Restricted(board, make_test_engine)
    restricted.acts = Acts(board, restricted.engine())
    restricted.acts._messages = 100
    yield restricted
    restricted.drop()


def break_read(role, mark):
    """Make every statement that holds `mark` fail, as a policy of the table it reads."""
    role.board.execute(f"""
        CREATE FUNCTION broken() RETURNS boolean LANGUAGE plpgsql STABLE AS $$ BEGIN
        IF current_query() LIKE '%{mark}%' THEN RAISE EXCEPTION 'unreadable' USING ERRCODE = '58030'; END IF;
        RETURN true; END $$""")
    role.board.execute("CREATE POLICY broken ON tasks USING (broken()) WITH CHECK (true)")
    role.board.execute("ALTER TABLE tasks ENABLE ROW LEVEL SECURITY")


BROKEN = {
    "the blockers": ("42501", lambda role: role.revoke("SELECT", "blockers")),
    "the blockers' states": ("58030", lambda role: break_read(role, "array_agg(blocker.id)")),
    "the children's states": ("58030", lambda role: break_read(role, "array_agg(child.id)")),
    "the lock on whoever waits": ("58030", lambda role: break_read(role, "SELECT child.parent_id")),
}


def everything(role):
    tables = ("tasks", "runs", "wakes", "mutations", "events", "comments")
    return {table: sorted(map(str, role.board.rows(f"SELECT * FROM {table}"))) for table in tables}


@pytest.mark.parametrize(("state", "fail"), BROKEN.values(), ids=BROKEN)
def test_a_failed_readiness_read_fails_the_whole_mutation(role, state, fail):
    """PRO-1.5: never taken for an empty set: no status, comment, event or wake; mended, the same message does it."""
    before = everything(role)
    fail(role)
    with pytest.raises(DBAPIError) as caught:
        role.acts.status("done", "B1", comment="c1", body="ready")
    assert sqlstate(caught.value) == state
    assert everything(role) == before
    role.acts._messages -= 1
    role.acts.engine = role.board.engine
    did = role.acts.status("done", "B1", comment="c1", body="ready")
    assert [reason for _, reason, _ in did.woken] == ["task_blockers_resolved", "task_children_completed"]


def test_a_status_that_asks_for_no_readiness_does_not_need_it(role):
    """PRO-1.5: only what is read can fail."""
    role.revoke("SELECT", "blockers")
    assert role.acts.status("in_progress", "B1").result["status"] == "in_progress"


def test_the_caller_hears_of_it(role, office):
    """PRO-1.5, ADM-7.3: through the Celery task, with its SQLSTATE and no statement."""
    from office_tasks import set_task_status

    role.revoke("SELECT", "blockers")
    office.engine = role.acts.engine
    with pytest.raises(DatabaseError, match="42501") as caught:
        set_task_status("B1", "done")
    assert "SELECT" not in str(caught.value)
    assert role.board.rows("SELECT status FROM tasks WHERE id = 'B1'") == [{"status": "todo"}]
