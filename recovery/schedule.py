"""What beat sends, and when: one entry a recovery job."""

from __future__ import annotations

from typing import Any, Final

from office_tasks import app

# Every entry carries `expires`, so that ticks queued while workers were down are dropped, not executed in a burst.
SCHEDULE: Final[dict[str, dict[str, Any]]] = {}

app.add_defaults({"beat_schedule": SCHEDULE})
