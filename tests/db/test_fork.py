"""C20: an engine that was used before the fork serves parent and children, each by connections of its own."""

from __future__ import annotations

import multiprocessing

import billiard.context
import pytest
from sqlalchemy import text

from db.engine import autocommit
from tests.db.forking import in_children

CONTEXTS = {"multiprocessing": multiprocessing.get_context("fork"), "billiard": billiard.context.ForkContext()}

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def backend(engine) -> int:
    with autocommit(engine) as connection:
        return connection.execute(text("SELECT pg_backend_pid()")).scalar_one()


@pytest.mark.parametrize(("forks", "threads"), [("multiprocessing", 1), ("multiprocessing", 4), ("billiard", 1)])
def test_each_child_has_connections_of_its_own(board, forks, threads):
    """C20: the parent uses the database, then 4 children admit 50 wakes each: no row holds another's payload."""
    before = backend(board.engine)
    sent = in_children(CONTEXTS[forks], board.engine, 4, 50, threads)

    assert [one for one in sent if isinstance(one, str)] == [], "no errors"
    assert len({one["pid"] for one in sent}) == 4
    backends = [one["backends"] for one in sent]
    assert len(set().union(*backends)) == sum(map(len, backends)), "no backend served two children"
    assert before not in set().union(*backends), "nor the parent's"
    assert backend(board.engine) == before, "whose own connection still works"

    payloads = {row["id"]: row["payload"] for row in board.rows("SELECT id, payload FROM wakes")}
    outcomes = {row["id"]: (row["outcome"], row["run_id"]) for row in board.rows("SELECT * FROM wakes")}
    assert len(payloads) == 4 * 50
    for one in sent:
        for wake_id, outcome, run_id, n in one["answers"]:
            assert (payloads[wake_id]["child"], payloads[wake_id]["n"]) == (one["child"], n)
            assert outcomes[wake_id] == (outcome, run_id)
    for run in board.runs():
        assert run["idempotency_key"] is None or run["idempotency_key"].startswith(f"{run['payload']['child']}:")


def test_a_fork_in_the_middle_of_a_transaction_leaves_the_parents_alone(board):
    """C20: a child neither uses nor closes the connection on which its parent has a transaction open."""
    with board.engine.begin() as connection:
        connection.execute(text("UPDATE agents SET name = 'renamed' WHERE id = 'ana'"))
        sent = in_children(CONTEXTS["multiprocessing"], board.engine, 2, 4)
        assert connection.execute(text("SELECT name FROM agents WHERE id = 'ana'")).scalar_one() == "renamed"

    assert [len(one["answers"]) for one in sent] == [4, 4]
    assert board.rows("SELECT name FROM agents WHERE id = 'ana'")[0]["name"] == "renamed"
