"""What `flowerconfig.py` does: adds our page, locked as the others are, and says how those look."""

from __future__ import annotations

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
    keep_quiet(app.office.settings.log_level)
    handlers.insert(0, url(r"/admissions", AdmissionsView, name="admissions"))
    lock(handlers)
    settings["template_loader"] = templates(Path(settings["template_path"]))
    return {name: value for name, value in _DEFAULTS.items() if f"FLOWER_{name.upper()}" not in os.environ}
