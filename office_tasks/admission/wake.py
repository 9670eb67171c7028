"""A wake: the request that an agent be started for a reason, checked before any gate sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from sqlalchemy import RowMapping

from db.facts import NEVER_MERGED
from db.statement import as_json
from office_tasks import validation
from office_tasks.reasons import TASK_ASSIGNED

Cause = Literal["unresolved", "by_design"]
AGENT: Final = "agent"
USER: Final = "user"
OFFICE: Final = "office"


@dataclass(frozen=True, slots=True)
class Keyless:
    """Why a wake has no key; its producer knows, nobody infers it (PRO-4)."""

    cause: Cause
    detail: str | None = None


BY_DESIGN: Final = Keyless("by_design")


@dataclass(frozen=True, slots=True)
class Wake:
    """What was asked. Build one with `wake()`, which checks it.

    `task_id`, `task_scope` and `actor_type` mean what the generated columns of the same names mean (ADM-8.1).
    """

    id: str
    agent_profile_id: str
    reason: str
    payload: str
    key: str | None
    keyless: Keyless | None
    producer: str
    task_id: str | None
    task_scope: str | None
    actor_type: str | None
    actor_id: str | None
    generation: int | None = None
    owed: bool = False

    @property
    def coalesces(self) -> bool:
        """Tell whether gate 4 may merge it at all (ADM-4.1, ADM-4.3)."""
        return self.task_scope is not None and not (self.key or "").startswith(NEVER_MERGED)

    @property
    def is_agent_assignment(self) -> bool:
        """Tell whether gate 5 looks at it: conditions (a) and (b) of ADM-5.1."""
        return self.reason == TASK_ASSIGNED and self.actor_type == AGENT

    def columns(self) -> dict[str, Any]:
        """Return the columns of its row that say what was asked."""
        return {
            "id": self.id,
            "reason": self.reason,
            "agent_profile_id": self.agent_profile_id,
            "payload": self.payload,
            "key": self.key,
            "generation": self.generation,
            "keyless_cause": self.keyless.cause if self.keyless else None,
            "keyless_detail": self.keyless.detail if self.keyless else None,
            "actor_type": self.actor_type,
            "actor_id": self.actor_id,
            "producer": self.producer,
        }


def wake(
    *,
    wake_id: str,
    agent_profile_id: object,
    reason: object,
    payload: object,
    key: str | None,
    producer: str,
    keyless: Keyless = BY_DESIGN,
    generation: int | None = None,
    owed: bool = False,
    admitted_before: bool = False,
) -> Wake:
    """Return a checked wake.

    Args:
        wake_id: the Celery task id for a bare wake, `<task id>#<n>` for one that a mutation owes (ADM-8.3).
        agent_profile_id: who is to be woken.
        reason: a registered reason, or a later producer's own.
        payload: any JSON value; None is stored as `{}`.
        key: a checked key, or None for no deduplication.
        producer: who asks.
        keyless: why there is no key, when there is none.
        generation: the generation in the key, when it has one.
        owed: its row stands already, owed by a mutation.
        admitted_before: the payload is a run's own, as it reads back; it is taken as it is (see `stored`).

    Raises:
        InvalidInput: ADM-8.2.
    """
    fields = payload if isinstance(payload, dict) else {}
    return Wake(
        id=wake_id,
        agent_profile_id=validation.identifier("agent_profile_id", agent_profile_id),
        reason=validation.identifier("reason", reason),
        payload=as_json(payload) if admitted_before else validation.payload(payload),
        key=key,
        keyless=keyless if key is None else None,
        producer=producer,
        task_id=_named_task(fields),
        task_scope=_scope(fields),
        actor_type=_text_or_none(fields.get("actor_type")),
        actor_id=_text_or_none(fields.get("actor_id")),
        generation=generation,
        owed=owed,
    )


def stored(row: RowMapping) -> Wake:
    """Return the wake that an owed row asks for.

    It was checked when it was asked, and is not checked again: a payload may read back longer than it was (1e300 comes
    back with all its digits), and what is owed must not become invalid by that.
    """
    payload = row["payload"]
    return Wake(
        id=row["id"],
        agent_profile_id=row["agent_profile_id"],
        reason=row["reason"],
        payload=as_json(payload),
        key=row["key"],
        keyless=Keyless(row["keyless_cause"], row["keyless_detail"]) if row["key"] is None else None,
        producer=row["producer"],
        task_id=row["task_id"],
        task_scope=_scope(payload if isinstance(payload, dict) else {}),
        actor_type=row["actor_type"],
        actor_id=row["actor_id"],
        generation=row["generation"],
        owed=True,
    )


def _named_task(fields: Mapping[str, Any]) -> str | None:
    found = fields.get("task_id")
    return (
        validation.text("payload.task_id", found, limit=validation.MAX_IDENTIFIER_BYTES) if _is_named(found) else None
    )


def _is_named(task_id: object) -> bool:
    return isinstance(task_id, str) and task_id != ""


def _scope(fields: Mapping[str, Any]) -> str | None:
    found = fields.get("task_id")
    if found is None or found == "":
        return ""
    return found if isinstance(found, str) else None


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
