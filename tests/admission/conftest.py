"""A furnished office for every test here, at the price of emptying tables instead of cloning a database."""

from __future__ import annotations

import pytest

from db.engine import make_engine
from db.models import Base
from tests.databases import plain
from tests.support import Board

_EMPTY = "; ".join(f"DELETE FROM {table.name}" for table in reversed(Base.metadata.sorted_tables))


@pytest.fixture(scope="session")
def admission_url(make_database, template):
    """The one database of this process that these tests share, one after the other."""
    return plain(make_database(template))


@pytest.fixture(scope="session")
def admission_engine(admission_url):
    engine = make_engine(admission_url, pool_size=4)
    yield engine
    engine.dispose()


@pytest.fixture
def acme(admission_engine):
    """A small office whose rows really commit: workspace `acme`, agents `ana` and `bob`, steps `start` and `wait`."""
    empty(admission_engine)
    yield Board(admission_engine).furnish()
    empty(admission_engine)


def empty(engine):
    with engine.begin() as connection:
        connection.exec_driver_sql(_EMPTY)
