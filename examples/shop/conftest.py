"""The office's fixtures, and the shop's own tables in the database of the tests."""

from collections.abc import Iterator

import pytest
import shop
from sqlalchemy import Engine, create_engine

pytest_plugins = ["office_tasks.testing"]


@pytest.fixture
def shop_engine(office_database_url: str) -> Iterator[Engine]:
    """The engine that the shop works with; its tables begin each test empty, as the office does."""
    engine = create_engine(office_database_url)
    shop.Base.metadata.create_all(engine)
    yield engine
    shop.Base.metadata.drop_all(engine)
    engine.dispose()
