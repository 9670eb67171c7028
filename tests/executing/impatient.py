"""The app with shorter patience than it has: seconds of grace where it gives 30, and 10 more, before it kills."""

from __future__ import annotations

import datetime as dt

from db import leases

leases.GRACE = dt.timedelta(seconds=2)

from office_tasks import app, configuration  # noqa: E402 - what it is configured with is read from the above

configuration.HARD_LIMIT_MARGIN = 2

__all__ = ["app"]
