"""What the demo's runs do: they note that they were there, and one asks for a second attempt."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from office_tasks import RetryAt, RunContext
from office_tasks.demo.office import RETRIED

_SOON: Final = dt.timedelta(seconds=1)


def work(context: RunContext) -> dict[str, Any]:
    """Return which attempt it was, in which conversation.

    Raises:
        RetryAt: the first attempt at the task that is to be retried.
    """
    if context.task and context.task.id == RETRIED and context.attempt == 1:
        raise RetryAt(dt.datetime.now(dt.UTC) + _SOON, "the kiln is cold yet")
    session_id = str(context.session.id) if context.session else None
    return {"attempt": context.attempt, "session_id": session_id}
