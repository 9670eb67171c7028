"""Fixtures of the database tests."""

from __future__ import annotations

import pytest

from db import migrate
from db.engine import make_engine
from office_tasks.devstack import Postgres
from tests.support import Board


@pytest.fixture(scope="module")
def own_server():
    """A server of this module's own, which its tests may kill: durable, with few connections to give."""
    with Postgres(settings={"max_connections": "12", "superuser_reserved_connections": "0"}) as server:
        engine = make_engine(server.url)
        migrate.upgrade(engine)
        engine.dispose()
        yield server


@pytest.fixture
def own_board(own_server):
    """A furnished office on the module's own server, its tables empty before it."""
    own_server.start()
    engine = make_engine(own_server.url, pool_size=4)
    board = Board(engine)
    board.execute("TRUNCATE workspaces, agents, runs, wakes, mutations CASCADE")
    yield board.furnish()
    engine.dispose()
