"""Our page in Flower: what was admitted, what is owed, and what recovery did."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from celery import Celery
from flower.views import BaseHandler
from sqlalchemy.exc import SQLAlchemyError
from tornado.ioloop import IOLoop
from tornado.template import DictLoader
from tornado.web import authenticated

from db import admissions
from db.admissions import Admissions
from db.engine import autocommit
from db.errors import DbError, brief
from office_tasks.reasons import CUSTOM, REASONS

_TAB: Final = """
        <li class="nav-item">
          <a class="nav-link{% if active_tab == 'admissions' %} active{% end %}"
            href="{{ reverse_url('admissions') }}"
            {% if active_tab == 'admissions' %}aria-current="page"{% end %}>Admissions</a>
        </li>
      """
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


class AdmissionsView(BaseHandler):  # type: ignore[misc]  # Flower has no types
    """The *Admissions* tab. Reads Postgres at each view; when that does not answer, says so (503)."""

    @authenticated
    async def get(self) -> None:
        """Show the page."""
        reading, fault = None, ""
        try:
            reading = await IOLoop.current().run_in_executor(None, read, self.capp)
        except (SQLAlchemyError, DbError) as error:
            self.set_status(503)
            fault = brief(error)
        words = {"at": at, "ago": ago, "told": told, "most_owed": admissions.MOST_OWED, "jobs": _jobs(self.capp)}
        self.render("admissions.html", reading=reading, fault=fault, **words)


def read(app: Celery) -> Admissions:
    """Take one reading, in the words of our counters: a reason that is not registered is `custom`.

    Raises:
        SQLAlchemyError: Postgres did not answer in time.
    """
    with autocommit(app.office.engine) as connection:
        return admissions.read(connection, sorted(REASONS), CUSTOM)


def templates(directory: Path) -> DictLoader:
    """Return Flower's templates, its navigation with our tab, and our page."""
    pages = {page.name: page.read_text() for page in directory.glob("*.html")}
    pages["navbar.html"] = with_tab(pages["navbar.html"])
    for page in (Path(__file__).parent / "templates").glob("*.html"):
        pages[page.name] = page.read_text()
    return DictLoader(pages)


def with_tab(navigation: str) -> str:
    """Return Flower's navigation with our tab, the last of its first list."""
    tabs, end, rest = navigation.partition("</ul>")
    return f"{tabs.rstrip()}{_TAB}{end}{rest}"


def ago(seconds: float) -> str:
    """Return a length of time as a person says it, in its largest unit."""
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return "0 s"


def told(result: Mapping[str, Any]) -> str:
    """Return what a recovery job did, in a line."""
    return ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in result.items()) or "nothing"


def _jobs(app: Celery) -> list[str]:
    return sorted(name for name in app.tasks if name.startswith("recovery."))


def at(instant: dt.datetime) -> str:
    """Return an instant in UTC, to the second."""
    return f"{instant.astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"
