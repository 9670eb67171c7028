"""`office status`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import typer

from office_tasks.cli.output import AsJson, say, show_json

Part = Mapping[str, Any]
_UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def register(office: typer.Typer) -> None:
    """Add the command."""
    office.command()(status)


def status(as_json: AsJson = False) -> None:
    """Say how the office is: what waits and for how long, what recovery did, what was declined, what is paused."""
    from office_tasks.cli.context import application, connection
    from office_tasks.status import status as read

    with connection() as reading:
        found = read(reading, application())
    if as_json:
        show_json(found)
        return
    for title, lines in _parts(found):
        for number, line in enumerate(lines):
            say(f"{'' if number else title:<10} {line}")


def _parts(found: Part) -> Iterable[tuple[str, Sequence[str]]]:
    yield "broker", _broker(found["broker"])
    yield "runs", _queue(found["queue"])
    yield "claims", _claims(found["claims"])
    yield "owed", _owed(found["owed"])
    yield "recovery", [_job(job) for job in found["jobs"]]
    yield "last hour", _last_hour(found["last_hour"])
    yield "paused", _paused(found["paused"])


def _broker(broker: Part) -> list[str]:
    if broker["error"]:
        return [f"{broker['url']} does not answer: {broker['error']}"]
    waiting = _list(f"{queue} {number}" for queue, number in broker["waiting"].items())
    workers = [f"worker {name} takes {_list(queues)}" for name, queues in broker["workers"].items()]
    return [f"{broker['url']} answers; messages that wait: {waiting}", *(workers or ["no worker answered"])]


def _queue(queue: Part) -> list[str]:
    queued = f"{queue['queued']} queued{_reasons(queue, 'queued')}"
    if queue["queued"]:
        retries = f"{queue['waiting_for_retry']} wait for a retry"
        queued += f"; {retries}; the longest that could start waits {_time(queue['oldest_queued_seconds'])}"
    ended = _list(f"{number} {how}" for how, number in queue["ended"].items())
    return [queued, f"{queue['claimed']} claimed{_reasons(queue, 'claimed')}", f"ended, about: {ended}"]


def _reasons(queue: Part, status: str) -> str:
    counted = [f"{row['number']} {row['reason']}" for row in queue["live"] if row["status"] == status]
    return f" ({_list(counted)})" if counted else ""


def _claims(claims: Part) -> list[str]:
    if not claims["stale"]:
        return ["none is stale"]
    return [
        f"{claims['stale']} stale, which the rescue takes over",
        *(f"{row['id']} of {row['agent_profile_id']}: its lease ran out at {_at(row['lease_expires_at'])}"
          for row in claims["stale_claims"]),
    ]  # fmt: skip


def _owed(owed: Part) -> list[str]:
    held = f"{owed['held_by_pauses']} of them held by a pause"
    oldest = f"the oldest of the others since {_time(owed['oldest_seconds'])}"
    return [
        f"{owed['wakes']} wakes" + (f"; {held}; {oldest}" if owed["wakes"] else ""),
        f"{owed['unsettled']} mutations to settle, {owed['unsent']} events to send",
        *(f"{row['id']} of {row['agent_profile_id']} failed {row['attempts']} times: {row['last_error']}"
          for row in owed["struggling"]),
        *(f"message {row['id']} of {row['task_name']} was given up at {_at(row['poisoned_at'])}"
          for row in owed["poisoned"]),
    ]  # fmt: skip


def _job(job: Part) -> str:
    if job["succeeded_at"] is None:
        return f"{job['job']}: never succeeded"
    late = f" (late: it is to run every {_time(job['every_seconds'])})" if job["late"] else ""
    did = _list(f"{name} {_value(value)}" for name, value in job["result"].items())
    return f"{job['job']}: {_time(job['age_seconds'])} ago{late}: {did}"


def _last_hour(hour: Part) -> list[str]:
    by_outcome = [
        f"{row['wakes']} {row['outcome']}" + (f" ({row['refusal']})" if row["refusal"] else "")
        for row in hour["decided"]
    ]
    kept = _list(f"{row['sessions']} ({row['retained']})" for row in hour["sessions_kept"])
    return [f"wakes{', at least' if hour['at_least'] else ''}: {_list(by_outcome)}", f"sessions kept: {kept}"]


def _paused(paused: Part) -> list[str]:
    workspaces = [
        f"{row['workspace_id']} since {_at(row['paused_at'])}" + (f" ({row['reason']})" if row["reason"] else "")
        for row in paused["paused_workspaces"]
    ]
    agents = [f"{row['id']} ({row['status']})" for row in paused["paused_agents"]]
    return [
        f"workspaces: {_named(workspaces, paused['workspaces_paused'])}",
        f"agents: {_named(agents, paused['agents_paused'])}",
    ]


def _named(shown: Sequence[str], number: int) -> str:
    more = number - len(shown)
    return _list(shown) + (f" and {more} more" if more > 0 else "")


def _list(words: Iterable[str]) -> str:
    return ", ".join(words) or "none"


def _value(value: object) -> object:
    return _list(f"{name} {number}" for name, number in value.items()) if isinstance(value, dict) else value


def _at(instant: str) -> str:
    return f"{dt.datetime.fromisoformat(instant).astimezone(dt.UTC):%Y-%m-%d %H:%M:%S} UTC"


def _time(seconds: float) -> str:
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
