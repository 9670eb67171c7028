"""The databases that tests are given: made, migrated by whoever asked, and gone afterwards."""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from office_tasks.testing.databases import Databases, NoTestServer, plain, server


@pytest.fixture
def there(engine):
    """Return whether the server has a database."""

    def ask(url):
        with engine.connect() as connection:
            query = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = %s)"
            return connection.exec_driver_sql(query, (url.database,)).scalar_one()

    return ask


def test_none_is_left(server_url, there):
    with Databases(server_url) as databases:
        one, two = databases.make(), databases.make()
        databases.drop(one)
        assert (there(one), there(two)) == (False, True)
    assert not there(two)


def test_a_url_for_another_driver_serves(server_url, there):
    """A URL that other tools read too names no driver, or theirs."""
    with Databases(server_url.set(drivername="postgresql")) as databases:
        made = databases.make()
        assert made.drivername == "postgresql+psycopg"
        assert there(made)


def test_a_named_server_is_taken_as_it_is(server_url):
    with server(plain(server_url)) as url:
        assert url == server_url


@pytest.mark.parametrize("named", ["nonsense", "postgresql://me:secret@host:port/x"])
def test_what_is_named_is_no_url(named):
    with pytest.raises(NoTestServer, match=r"has no URL.*OFFICE_TEST_DATABASE_URL") as error, server(named):
        pass
    assert "secret" not in str(error.value)


def test_a_server_that_does_not_answer():
    """One sentence that says what to do, without the password."""
    with (
        Databases(make_url("postgresql://me:secret@127.0.0.1:1/nothing")) as databases,
        pytest.raises(NoTestServer, match=r"no database can be made on .*me:\*\*\*@.*or name a server") as error,
    ):
        databases.make()
    assert "secret" not in str(error.value)
