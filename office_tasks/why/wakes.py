"""What was asked, and what the gates made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from db.owed import GRACE
from office_tasks.admission import (
    ALLOWANCE_WINDOW,
    ASSIGNMENT_ALLOWANCE,
    COALESCE_WINDOW,
    DUPLICATE_LOOKBACK,
    GATES,
    Outcome,
)
from office_tasks.errors import POISONED
from office_tasks.why.causer import causer
from office_tasks.why.words import Row, at, pause_in_the_way

_NUMBERS: Final = {gate.decide.__name__: number for number, gate in enumerate(GATES, 1)}
_MINUTES: Final = int(ALLOWANCE_WINDOW.total_seconds() // 60)
_HOURS: Final = int(DUPLICATE_LOOKBACK.total_seconds() // 3_600)


def asked(wake: Row) -> str:
    """Say what was asked, of whom, by whom and through what."""
    return f"{wake['reason']} of {wake['agent_profile_id']}, asked by {causer(wake)} through {wake['producer']}"


def decided(wake: Row) -> list[str]:
    """Say which gate decided it, and with what; or why it is not decided yet."""
    if wake["state"] == "owed":
        return _owed(wake)
    if wake["state"] == "superseded":
        return ["It was closed undecided: while it was owed, a later assignment made it moot."]
    return [_BY_OUTCOME[Outcome(wake["outcome"])](wake)]


def is_for_the_relay(wake: Row) -> bool:
    """Tell whether nothing holds it up but that the relay has to run."""
    return wake["state"] == "owed" and wake["workspace_paused_at"] is None


def _owed(wake: Row) -> list[str]:
    failures = _failures(wake)
    if paused := pause_in_the_way(wake):
        return [f"It is owed: {paused}. It passes the gates when that is resumed.", *failures]
    if wake["next_attempt_at"] and wake["next_attempt_at"] > wake["now"]:
        return [f"It is owed: the relay tries it again at {at(wake['next_attempt_at'])}.", *failures]
    seconds = int(GRACE.total_seconds())
    return [f"It is owed: the relay takes it up at its next pass, {seconds} s after it was asked.", *failures]


def _failures(wake: Row) -> list[str]:
    if not wake["attempts"]:
        return []
    often = "once" if wake["attempts"] == 1 else f"{wake['attempts']} times"
    return [f"It was tried {often} and failed, the last time with: {wake['last_error'] or 'nothing was noted'}."]


def _queued(wake: Row) -> str:
    said = f"No gate stopped it: it became run {wake['run_id']}."
    if wake["observed"] is None:
        return said
    return f"{said} Agents had had the task assigned {_times(wake)}, and may {ASSIGNMENT_ALLOWANCE}."


def _coalesced(wake: Row) -> str:
    seconds = int(COALESCE_WINDOW.total_seconds())
    return f"{_gate(wake)} merged it into run {wake['run_id']}, a like one of the last {seconds} s that still waited."


def _deduped(wake: Row) -> str:
    by = f"run {wake['run_id']}" if wake["run_id"] else "a run that is gone"
    if wake["gate"] == GATES[-1].decide.__name__:
        return f"{_gate(wake)} declined it: {by} bears its key {wake['key']} already."
    return f"{_gate(wake)} declined it: {by} came by its key {wake['key']} within the last {_HOURS} h."


def _rate_limited(wake: Row) -> str:
    return (
        f"{_gate(wake)} declined it: agents had had the task assigned {_times(wake)}, and may "
        f"{ASSIGNMENT_ALLOWANCE}. The change itself stands; a user is not limited."
    )


def _none(wake: Row) -> str:
    message = wake["last_error"] or wake["refusal"]
    if wake["refusal"] == POISONED:
        return f"It was given up: {message}."
    return f"{_gate(wake)} refused it ({wake['refusal']}): {message}."


def _times(wake: Row) -> str:
    often = "once" if wake["observed"] == 1 else f"{wake['observed']} times"
    return f"{often} within {_MINUTES} minutes"


def _gate(wake: Row) -> str:
    name = wake["gate"]
    return f"Gate {_NUMBERS[name]} ({name.replace('_', ' ')})"


_BY_OUTCOME: Final[Mapping[Outcome, Callable[[Row], str]]] = {
    Outcome.QUEUED: _queued,
    Outcome.COALESCED: _coalesced,
    Outcome.DEDUPED: _deduped,
    Outcome.RATE_LIMITED: _rate_limited,
    Outcome.NONE: _none,
}
