"""`office servers`: what it prints leads to two real servers, and both end with it."""

from __future__ import annotations

import signal

import redis
from sqlalchemy import text

from db.engine import autocommit, make_engine
from tests.cli.conftest import start


def test_they_serve_until_they_are_told_to_stop(tmp_path):
    """A person copies the first line into another terminal, and stops both with Ctrl-C."""
    with start("servers", "--data-dir", "here", cwd=tmp_path) as serving:
        said = serving.stdout.readline().split()
        database, broker = (word.partition("=")[2] for word in said[1:])
        assert said[0] == "export"
        engine = make_engine(database)
        with autocommit(engine) as connection:
            assert connection.execute(text("SELECT 1")).scalar_one() == 1
        assert redis.Redis.from_url(broker).ping()
        engine.dispose()
        serving.send_signal(signal.SIGINT)
        assert serving.wait(30) == 0
