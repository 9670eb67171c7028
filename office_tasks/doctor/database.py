"""What Postgres says: whether it can be reached, its schema, its role, its clock, and when beat was last seen."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from sqlalchemy import Connection, Engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from db import migrate, roles
from db.clock import now
from db.engine import autocommit
from db.errors import DbError, brief, needs_password, uses_password
from office_tasks import beat
from office_tasks.doctor.finding import Finding, error, ok, warn
from office_tasks.urls import place

# Workers are late or early by that much at the most, as everything that they time by their own clock.
SKEW_ALLOWED: Final = dt.timedelta(seconds=1)
_VARIABLE: Final = "OFFICE_DATABASE_URL"
_SEE_TO_BEAT: Final = "see that beat runs, and that a worker takes the queue recovery"


def examine(engine: Engine, periods: Mapping[str, dt.timedelta]) -> Iterator[Finding]:
    """Check the database as far as it can be reached.

    Args:
        engine: opened here for the first time, so that what it meets is what a worker would meet.
        periods: how often each recovery job is to run.
    """
    yield from _connected(engine, lambda connection: _inside(connection, place(engine.url), periods))


def pulse(engine: Engine, periods: Mapping[str, dt.timedelta]) -> Iterator[Finding]:
    """Check only whether beat's ticks are sent and done, as `examine` may not be asked every minute.

    Args:
        engine: as of `examine`.
        periods: likewise. Whichever job was the last to succeed, it is held against the shortest of them.
    """
    yield from _connected(engine, lambda connection: [_pulse(connection, periods)])


def _connected(engine: Engine, look: Callable[[Connection], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        with autocommit(engine) as connection:
            yield from look(connection)
    except (SQLAlchemyError, DbError) as fault:
        yield _unreachable(engine, place(engine.url), fault)


def _inside(connection: Connection, where: str, periods: Mapping[str, dt.timedelta]) -> Iterator[Finding]:
    yield ok("database", f"{where} answers")
    role = roles.read(connection)
    schema = migrate.standing(connection) if role.may_read_versions else "unread"
    yield _SCHEMA[schema]
    yield _role(role)
    if schema == "current":
        yield _skew(connection)
        if not role.missing:
            yield from _beat(connection, periods)


def _unreachable(engine: Engine, where: str, fault: Exception) -> Finding:
    if needs_password(fault):
        return error("database", f"{where} wants a password, and none is given", f"add it to {_VARIABLE}")
    if uses_password(fault) and not _password_is_right(engine):
        user = make_url(engine.url).username
        return error("database", f"{where} refused the password of role {user}", f"correct it in {_VARIABLE}")
    said = str(fault) if isinstance(fault, DbError) else brief(fault)
    return error("database", f"{where} cannot be worked with: {said}", f"start it, or correct {_VARIABLE}")


def _password_is_right(engine: Engine) -> bool:
    """Tell whether the role gets in anywhere: what fails after the password was taken is another fault."""
    return roles.may_log_in(engine.url)


_SCHEMA: Final = {
    "current": ok("migrations", "the schema is this version's"),
    "behind": error("migrations", "the schema is older than this version", "run `office migrate`"),
    "unread": warn(
        "migrations",
        "the role may not read alembic_version, so nobody can tell",
        "GRANT SELECT ON alembic_version to it",
    ),
    "ahead": error("migrations", "the schema is newer than this version", "install the version that migrated it"),
}


def _role(role: roles.Role) -> Finding:
    if role.missing:
        return error(
            "role",
            f"role {role.name} may not read and write {', '.join(role.missing)}",
            f'GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {role.schema} TO "{role.name}"',
        )
    if role.may_change_schema:
        return warn(
            "role",
            f"role {role.name} may change the schema, which no worker needs",
            "let another role own the tables and migrate; give workers one that may read and write rows",
        )
    return ok("role", f"role {role.name} may read and write rows, and change no schema")


def _skew(connection: Connection) -> Finding:
    """Compare the clocks; the time that the answer took is counted in favour of both."""
    before = time.time()
    theirs = now(connection).timestamp()
    after = time.time()
    skew = theirs - min(max(theirs, before), after)
    if abs(skew) <= SKEW_ALLOWED.total_seconds():
        return ok("clock", "this machine and Postgres agree within a second")
    return warn(
        "clock",
        f"this machine is {abs(skew):.0f} s {'behind' if skew > 0 else 'ahead of'} Postgres",
        "synchronize both (NTP): no window moves, but beat's ticks expire and Celery's retries come at wrong times",
    )


def _beat(connection: Connection, periods: Mapping[str, dt.timedelta]) -> list[Finding]:
    instant, succeeded = now(connection), roles.last_successes(connection)
    never = [job for job in periods if job not in succeeded]
    late = [job for job in periods if job in succeeded and beat.is_late(instant - succeeded[job], periods[job])]
    found = []
    if late:
        since = max(succeeded[job] for job in late)
        found.append(error("beat", f"{', '.join(late)} succeeded last at {_at(since)} at the latest", _SEE_TO_BEAT))
    if never:
        found.append(warn(
            "beat", f"{', '.join(never)} never succeeded here",
            "start beat, and a worker that takes the queue recovery: retries and recoveries wait for them",
        ))  # fmt: skip
    return found or [ok("beat", "every recovery job succeeded when it was due")]


def _pulse(connection: Connection, periods: Mapping[str, dt.timedelta]) -> Finding:
    instant, succeeded = now(connection), roles.last_successes(connection)
    newest = max((succeeded[job] for job in periods if job in succeeded), default=None)
    if newest is None:
        return error("beat", "no recovery job ever succeeded here", _SEE_TO_BEAT)
    if beat.is_late(instant - newest, min(periods.values())):
        return error("beat", f"no recovery job has succeeded since {_at(newest)}", _SEE_TO_BEAT)
    return ok("beat", f"a recovery job succeeded at {_at(newest)}")


def _at(instant: dt.datetime) -> str:
    return f"{instant.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
