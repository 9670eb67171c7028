"""What holds a task back now, and what the sweep makes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from db.unstarted import Verdict
from office_tasks.why.words import Row, at

# Why a task is no candidate of the sweep: `db.unstarted` decides, here are its words.
NO_CANDIDATE: Final[Mapping[str, str]] = {
    "replay": "its workspace is a replay's",
    "not_todo": "it is {status}, and only a task that is todo may have been forgotten",
    "archived": "it is archived",
    "ephemeral": "it is ephemeral",
    "automation": "an automation created it",
    "no_office_task": "it is in no project, and not on the office workflow of its workspace",
    "too_old": "it was created before the hours that its workspace looks back (recovery_lookback_hours)",
    "unassigned": "it was unassigned, and nobody was assigned since",
    "started": "it has a run that is queued, claimed or finished, so it was started",
    "owed": "a wake for its assignment is owed, which the relay decides",
    "no_runner": "nobody drives it",
}

# Why a candidate is passed over, which costs it nothing: it is looked at again at every pass.
SKIPPED: Final[Mapping[str, str]] = {
    "agent_not_found": "there is no agent {agent}",
    "agent_not_wakeable": "agent {agent} is {agent_status}",
    "workspace_paused": "the workspace of agent {agent} is paused",
    "step_does_not_auto_start": "its step starts no work by itself",
    "blocked": "it waits for what blocks it",
    "backing_off": "it was woken before, and its gap is not over before {again_at}",
}


def blocked(blockers: Sequence[Row]) -> list[str]:
    """Say what a task still waits for."""
    if not blockers:
        return []
    named = ", ".join(f"{blocker['id']} ({blocker['status']})" for blocker in blockers)
    return [f"It is blocked by {named}."]


def swept(verdict: Verdict, task: Row) -> str:
    """Say what the sweep for tasks that never started makes of it."""
    if verdict.no_candidate:
        return f"The sweep leaves it alone: {NO_CANDIDATE[verdict.no_candidate].format(status=task['status'])}."
    if verdict.skipped is None:
        return f"The sweep wakes agent {verdict.runner_id} for it at one of its next passes."
    again = at(verdict.again_at) if verdict.again_at else "its next pass"
    because = SKIPPED[verdict.skipped].format(
        agent=verdict.runner_id, agent_status=verdict.agent_status, again_at=again
    )
    return f"The sweep passes it over: {because}."
