"""What `flowerconfig.py` does: locks Flower, adds our page, and says how the others look."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import Any, Final

from flower.urls import handlers, settings
from tornado.web import url

from office_tasks import app
from office_tasks.watching.doors import keep_closed, lock
from office_tasks.watching.pages import AdmissionsView, templates
from office_tasks.watching.quiet import keep_quiet

_DEFAULTS: Final[dict[str, Any]] = {
    "natural_time": True,
    "tasks_columns": "name,state,result,runtime,received,args,kwargs,uuid",
    # A worker that is gone for this long leaves the list and the metrics.
    "purge_offline_workers": 600,
}


def prepare() -> dict[str, Any]:
    """Make Flower ours, and return the options that neither its environment nor, later, its command line names."""
    keep_closed()
    # Flower looks results up in whatever app is the default; ours leaves that place to its callers' own.
    app.set_default()
    keep_quiet(app.office.settings.log_level)
    handlers.insert(0, url(r"/admissions", AdmissionsView, name="admissions"))
    lock(handlers)
    settings["template_loader"] = templates(Path(settings["template_path"]))
    unnamed = {name: value for name, value in _DEFAULTS.items() if f"FLOWER_{name.upper()}" not in os.environ}
    return {**unnamed, "format_task": format_task}


def format_task(task: Any) -> Any:  # noqa: ANN401 - a Celery event's task
    """Put the outcome first in what Flower shows of a result."""
    if said := outcomes(getattr(task, "result", None)):
        task.result = f"{said} · {task.result}"
    return task


def outcomes(result: object) -> str:
    """Return the outcome, or the outcomes of the wakes, that the repr of a result holds; "" when it holds none."""
    try:
        found = ast.literal_eval(result) if isinstance(result, str) else None
    except (ValueError, SyntaxError, RecursionError):
        return ""
    wakes = found.get("wakes", [found]) if isinstance(found, dict) else []
    said = (each.get("outcome") for each in wakes if isinstance(each, dict)) if isinstance(wakes, list) else ()
    return ", ".join(outcome for outcome in said if isinstance(outcome, str))
