"""Leases: renewed while a handler runs, taken over from whoever renews no more (REC-2.8, REC-2.10)."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection

from db.claims import LEASE, Claimed
from db.lifecycle import CLAIMED
from db.statement import Statement

# How long an execution that was asked to stop may take to do so.
GRACE: Final = dt.timedelta(seconds=30)

_RENEW: Final = Statement(f"""
    UPDATE runs SET lease_expires_at = office_now() + CAST(:lease AS interval)
    WHERE id = :id AND {CLAIMED} AND lease_token = CAST(:token AS uuid)
    RETURNING cancel_requested_at IS NOT NULL""")

_ASKED_TO_STOP: Final = Statement(f"""
    SELECT cancel_requested_at IS NOT NULL FROM runs
    WHERE id = :id AND {CLAIMED} AND lease_token = CAST(:token AS uuid)""")

# The rescuer becomes the holder: what it then does to the run, any holder may do, and should it die, so may the next.
# A subquery in FROM may be read once for each row it is joined to; it then passes over what this very statement has
# updated, and its limit bounds nothing. A materialized one is read once, by whatever plan.
_TAKE_OVER: Final = Statement(f"""
    WITH stale AS MATERIALIZED (
        SELECT id AS stale_id, lease_expires_at <= office_now() AS expired FROM runs
        WHERE {CLAIMED} AND (lease_expires_at <= office_now()
                             OR cancel_requested_at <= office_now() - CAST(:grace AS interval))
        ORDER BY lease_expires_at LIMIT :most FOR UPDATE SKIP LOCKED)
    UPDATE runs SET lease_token = gen_random_uuid(), lease_expires_at = office_now() + CAST(:lease AS interval)
    FROM stale
    WHERE id = stale_id
    RETURNING expired, {", ".join(Claimed._fields)}""")


class Stale(NamedTuple):
    """A run whose holder was replaced: because its lease ran out, or because it did not stop in time."""

    expired: bool
    run: Claimed


def renew(connection: Connection, run_id: uuid.UUID, token: uuid.UUID) -> bool | None:
    """Renew a lease; return whether the execution is asked to stop, or None when the lease is lost."""
    params = {"id": run_id, "token": token, "lease": LEASE}
    found: bool | None = _RENEW.run(connection, params).scalar_one_or_none()
    return found


def asked_to_stop(connection: Connection, run_id: uuid.UUID, token: uuid.UUID) -> bool | None:
    """Tell whether the execution is asked to stop; None when the lease is lost."""
    found: bool | None = _ASKED_TO_STOP.run(connection, {"id": run_id, "token": token}).scalar_one_or_none()
    return found


def take_over(connection: Connection, most: int) -> Sequence[Stale]:
    """Take over at most `most` claims that expired, or that were asked to stop longer than `GRACE` ago."""
    rows = _TAKE_OVER.run(connection, {"lease": LEASE, "grace": GRACE, "most": most})
    return [Stale(expired, Claimed(*run)) for expired, *run in rows]
