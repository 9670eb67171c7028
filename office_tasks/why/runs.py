"""What became of a run, and what it waits for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from db import executions
from db.explaining import AHEAD
from office_tasks import termination
from office_tasks.execution import begin
from office_tasks.execution.backoff import GAPS
from office_tasks.why.words import Row, agent_in_the_way, at, pause_in_the_way, several

ATTEMPTS: Final = len(GAPS) + 1

# Every reason that a run is cancelled for, in words.
CANCELLED_BECAUSE: Final[Mapping[str, str]] = {
    begin.TASK_GONE: "the task that it names is not there",
    begin.RUNNER_CHANGED: "somebody else drives the task now",
    begin.TASK_TERMINAL: "the task was done or cancelled",
    executions.OPERATOR: "an operator cancelled it",
    executions.WORKSPACE_PAUSED: "its workspace was paused, with what it executed",
    executions.INTERRUPTED: "its task was cancelled or given to somebody else while it ran",
    termination.REASSIGNED: "its task was reassigned while it waited for a retry",
    termination.SEAT_CLAIMED: "it was a review for a seat that another agent claimed",
    termination.AGENT_DELETED: "its agent was deleted",
}


def became(run: Row) -> list[str]:
    """Say what became of a run, and all that it waits for."""
    return _BY_STATUS[run["status"]](run)


def is_moot(run: Row, task: Row | None) -> list[str]:
    """Say of a queued run that whoever claims it will cancel it, as its task stands now (REC-2.3)."""
    about = begin.About(run["task_id"], run["reason"], run["agent_profile_id"])
    stands = begin.Stands(task["status"], task["runner_id"]) if task else None
    why = begin.stale(about, stands) if run["status"] == "queued" else None
    return [f"Whoever takes it up cancels it: {CANCELLED_BECAUSE[why]}."] if why else []


def is_for_a_worker(run: Row) -> bool:
    """Tell whether nothing holds it up but that a worker has to take it."""
    return run["status"] == "queued" and not _in_its_way(run)


def _queued(run: Row) -> list[str]:
    found = _in_its_way(run) or ["nothing is in its way: it starts when a worker takes it up"]
    said = [f"It is queued since {at(run['requested_at'])}: {'; '.join(found)}."]
    if run["attempt"]:
        left = ATTEMPTS - run["attempt"]
        said.append(f"Attempt {run['attempt']} failed: {run['error']}. {several(left, 'attempt')} left.")
    return said


def _in_its_way(run: Row) -> list[str]:
    agent = run["agent_profile_id"]
    found = [agent_in_the_way(run), pause_in_the_way(run)]
    if run["is_replay"]:
        found.append("its workspace is a replay's, whose runs nobody executes")
    if run["scheduled_retry_at"] and run["scheduled_retry_at"] > run["now"]:
        found.append(f"it is tried again at {at(run['scheduled_retry_at'])}")
    if run["executing"] >= run["executing_limit"] and run["agent_status"]:
        executed = several(run["executing"], "run")
        found.append(f"agent {agent} executes {executed}, and may execute {run['executing_limit']} at once")
    if run["ahead"]:
        number = f"{AHEAD} or more" if run["ahead"] >= AHEAD else run["ahead"]
        found.append(f"{number} of the agent's runs {'is' if number == 1 else 'are'} in line before it")
    return [one for one in found if one]


def _claimed(run: Row) -> list[str]:
    said = f"It is executed since {at(run['claimed_at'])}, attempt {run['attempt']} of {ATTEMPTS}."
    return [said, *_asked_to_stop(run), *_lease(run)]


def _asked_to_stop(run: Row) -> list[str]:
    if run["cancel_requested_at"] is None:
        return []
    return [f"It was asked to stop at {at(run['cancel_requested_at'])}: {_because(run)}."]


def _lease(run: Row) -> list[str]:
    if run["lease_expires_at"] > run["now"]:
        return [f"Its worker renews its lease, which holds until {at(run['lease_expires_at'])}."]
    ended = at(run["lease_expires_at"])
    return [f"Its lease ran out at {ended}: its worker died or stood still, and the rescue takes it over."]


def _finished(run: Row) -> list[str]:
    return [f"It finished at {at(run['finished_at'])}, in attempt {run['attempt']} of {ATTEMPTS}."]


def _failed(run: Row) -> list[str]:
    said = f"It failed for good at {at(run['finished_at'])}, in attempt {run['attempt']} of {ATTEMPTS}"
    return [f"{said}: {run['error'] or 'no error was noted'}."]


def _cancelled(run: Row) -> list[str]:
    said = [f"It was cancelled at {at(run['finished_at'])}: {_because(run)}."]
    return [*said, f"Its attempt {run['attempt']} had ended with: {run['error']}."] if run["error"] else said


def _because(run: Row) -> str:
    reason = run["cancel_reason"]
    return CANCELLED_BECAUSE.get(reason, reason or "nobody said why")


_BY_STATUS: Final[Mapping[str, Callable[[Row], list[str]]]] = {
    "queued": _queued,
    "claimed": _claimed,
    "finished": _finished,
    "failed": _failed,
    "cancelled": _cancelled,
}
