"""Every check, in the order in which a fault would be mended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from celery import Celery
from pydantic import ValidationError

from office_tasks import beat
from office_tasks import broker as brokers
from office_tasks.doctor import broker, database, settings
from office_tasks.doctor.finding import Finding, error, ok
from office_tasks.office import Office
from office_tasks.settings import SettingsError


def examine(
    open_office: Callable[[], Office], application: Callable[[], Celery], environment: Mapping[str, str]
) -> Iterator[Finding]:
    """Run every check that can be run; a fault in one is a finding, and stops only what depends on it.

    Args:
        open_office: reads the settings.
        application: the Celery application, whose broker is looked at.
        environment: where Flower's settings are.
    """
    try:
        office = open_office()
    except (SettingsError, ValidationError) as fault:
        yield from (error("settings", said, "correct it; nothing starts before") for said in str(fault).split("; "))
    else:
        yield from _office(office, application())
    yield from settings.flower(environment)


def pulse(office: Office, app: Celery) -> Iterator[Finding]:
    """Look only whether beat is at work: cheap enough to be a health check, which fails when beat hangs (C37)."""
    return database.pulse(office.engine, beat.periods(app))


def _office(office: Office, app: Celery) -> Iterator[Finding]:
    yield ok("settings", "every OFFICE_* variable has a value that can work")
    yield settings.limits(office.settings)
    yield settings.retention(office.settings)
    yield settings.run_handler(office.settings)
    yield from database.examine(office.engine, beat.periods(app))
    yield from broker.examine(brokers.look(app))
    yield from broker.others(office.settings)
