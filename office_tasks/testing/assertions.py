"""What a test says of wakes, and what it is told when it is wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack

from db.states import OUTCOMES
from office_tasks.errors import POISONED, REFUSALS
from office_tasks.testing.trial import TrialOffice
from office_tasks.why import wakes as why

Row = Mapping[str, Any]
WORDS: Final = (*OUTCOMES, "owed", "superseded", *REFUSALS, POISONED)
_SHOWN: Final = 200


class About(TypedDict, total=False):
    """Which wakes are meant; what is left out may be anything."""

    agent: str
    reason: str
    task: str | None
    """The task's id; None for a wake that names no task."""
    payload: Any
    """A dict must be contained in the wake's payload; anything else must equal it."""


def assert_admitted(office: TrialOffice, *, times: int = 1, **about: Unpack[About]) -> Sequence[Row]:
    """Assert that exactly `times` such wakes were admitted, each as a run of its own; return their rows (ADM-7.1).

    Raises:
        AssertionError: the message lists every wake of the office, and says what decided it.
    """
    __tracebackhide__ = True
    return assert_outcome(office, "queued", times=times, **about)


def assert_not_admitted(office: TrialOffice, **about: Unpack[About]) -> None:
    """Assert that no such wake was admitted, whatever else became of it: nothing asked for one, too.

    Raises:
        AssertionError: as of `assert_admitted`.
    """
    __tracebackhide__ = True
    assert_outcome(office, "queued", times=0, **about)


def assert_outcome(office: TrialOffice, outcome: str, *, times: int = 1, **about: Unpack[About]) -> Sequence[Row]:
    """Assert that exactly `times` such wakes came to `outcome`; return their rows.

    Args:
        office: the fixture.
        outcome: `queued`, `coalesced`, `deduped`, `rate_limited` or `none`; `owed` or `superseded`; or a refusal:
            `agent_not_found`, `agent_not_wakeable`, `workspace_paused`, `pause_gate_unavailable`, `poisoned`.
        times: how many.
        about: which wakes are meant.

    Raises:
        AssertionError: as of `assert_admitted`.
        ValueError: there is no such outcome.
        TypeError: there is nothing of that name to tell wakes by.
    """
    __tracebackhide__ = True
    if outcome not in WORDS:
        raise ValueError(f"there is no outcome {outcome!r}; there are {', '.join(WORDS)}")
    if unknown := about.keys() - About.__annotations__.keys():
        raise TypeError(f"wakes are told by {', '.join(About.__annotations__)}, not by {', '.join(sorted(unknown))}")
    found = [row for row in office.wakes if outcome in _words(row) and _fits(row, about)]
    if len(found) != times:
        wanted = "wake" if times <= 1 else "wakes"
        meant = ", ".join(f"{name}={value!r}" for name, value in about.items())
        said = f"expected {times or 'no'} {outcome} {wanted}{f' ({meant})' if meant else ''}, found {len(found)}"
        raise AssertionError(f"{said}\n{_told(office)}")
    return found


def assert_nothing_owed(office: TrialOffice) -> None:
    """Assert that every wake is decided or superseded, and that none waits for the relay or for a paused workspace.

    Raises:
        AssertionError: as of `assert_admitted`.
    """
    __tracebackhide__ = True
    assert_outcome(office, "owed", times=0)


def _words(row: Row) -> set[str]:
    return {row["state"], row["outcome"], row["refusal"]}


def _fits(row: Row, about: About) -> bool:
    named = {"agent": row["agent_profile_id"], "reason": row["reason"], "task": row["task_id"]}
    asked = dict(about)
    payload = asked.pop("payload", ...)
    return all(named[name] == value for name, value in asked.items()) and _holds(row["payload"], payload)


def _holds(stored: object, wanted: object) -> bool:
    if isinstance(wanted, dict) and isinstance(stored, dict):
        return all(name in stored and stored[name] == value for name, value in wanted.items())
    return wanted is ... or stored == wanted


def _told(office: TrialOffice) -> str:
    rows = office.wakes
    if not rows:
        return "Nobody asked for a wake; what is not committed is not seen here."
    return "\n".join([f"The wakes of this office, at {office.clock.now:%Y-%m-%d %H:%M:%S}:", *map(_line, rows)])


def _line(row: Row) -> str:
    payload = json.dumps(row["payload"], ensure_ascii=False)
    became = row["refusal"] or row["outcome"] or row["state"]
    task = f" on task {row['task_id']}" if row["task_id"] else ""
    sentences = "".join(f"\n      {sentence}" for sentence in why.decided(row))
    shown = payload if len(payload) <= _SHOWN else f"{payload[:_SHOWN]}…"
    asked = f"{row['requested_at']:%H:%M:%S} {why.asked(row)}{task}"
    return f"  {became}: {asked}{sentences}\n      payload: {shown}"
