"""How an execution ends: one conditional write, and whoever lost the lease writes nothing (REC-2.1, REC-2.8)."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import Connection

from db import sessions
from db.executions import INTERRUPTED
from db.lifecycle import CLAIMED, RUN
from db.statement import Statement

Event = Literal["finish", "retry", "fail", "cancel"]

# An execution that was asked to stop ends cancelled, whatever its handler made of it.
_END: Final = Statement(f"""
    UPDATE runs SET
        status = CASE WHEN cancel_requested_at IS NULL THEN CAST(:target AS text) ELSE '{RUN["cancel"].target}' END,
        cancel_reason = CASE WHEN cancel_requested_at IS NULL THEN CAST(:cancel_reason AS text)
                             ELSE coalesce(cancel_reason, '{INTERRUPTED}') END,
        scheduled_retry_at = CASE WHEN cancel_requested_at IS NULL AND CAST(:target AS text) = '{RUN["retry"].target}'
            THEN coalesce(CAST(:retry_at AS timestamptz), office_now() + CAST(:gap AS interval)) END,
        finished_at = CASE WHEN cancel_requested_at IS NULL AND CAST(:target AS text) = '{RUN["retry"].target}'
            THEN NULL ELSE office_now() END,
        result = CAST(:result AS jsonb), error = CAST(:error AS text), lease_token = NULL, lease_expires_at = NULL
    WHERE id = :id AND {CLAIMED} AND lease_token = CAST(:token AS uuid)
    RETURNING session_id, status, scheduled_retry_at, cancel_reason""")


@dataclass(frozen=True, slots=True)
class Ending:
    """What becomes of an execution.

    Args:
        event: of `db.lifecycle.RUN`.
        result: of `finish`: JSON text.
        error: of `retry` and `fail`: a sentence.
        cancel_reason: of `cancel`.
        gap: of `retry`: how long from now.
        retry_at: of `retry`: when; instead of the gap.
    """

    event: Event
    result: str | None = None
    error: str | None = None
    cancel_reason: str | None = None
    gap: dt.timedelta | None = None
    retry_at: dt.datetime | None = None


class Ended(NamedTuple):
    """What became of it: the run's status now, when it is tried again if it is, why it was cancelled if it was."""

    status: str
    scheduled_retry_at: dt.datetime | None
    cancel_reason: str | None


def end(connection: Connection, run_id: uuid.UUID, token: uuid.UUID, ending: Ending) -> Ended | None:
    """End an execution and let its session idle; None, and nothing written, when its lease is no longer `token`.

    Args:
        connection: in a transaction.
        run_id: the run.
        token: the lease it was claimed with.
        ending: how it ended. A run that was asked to stop is cancelled, with its result or error kept.
    """
    row = _END.run(connection, _params(run_id, token, ending)).one_or_none()
    if row is None:
        return None
    session_id, *ended = row
    if session_id:
        sessions.rest(connection, session_id)
    return Ended(*ended)


def _params(run_id: uuid.UUID, token: uuid.UUID, ending: Ending) -> dict[str, Any]:
    return {
        "id": run_id,
        "token": token,
        "target": RUN[ending.event].target,
        "result": ending.result,
        "error": ending.error,
        "cancel_reason": ending.cancel_reason,
        "gap": ending.gap,
        "retry_at": ending.retry_at,
    }
