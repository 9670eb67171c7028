"""Admission, small and slow, written from the criteria: what the real one is compared with.

It keeps a list of runs and looks at all of them each time. It shares nothing with the real one but the contract's
constants (ADM-1.3) and the answers' vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from office_tasks.admission import ALLOWANCE_WINDOW, ASSIGNMENT_ALLOWANCE, COALESCE_WINDOW, DUPLICATE_LOOKBACK

NEVER_MERGES = object()


@dataclass
class Run:
    name: Any
    agent: str
    reason: str
    payload: Any
    key: str | None
    requested_at: datetime
    status: str = "queued"
    retry_at: datetime | None = None
    count: int = 1


@dataclass
class Said:
    """What the model answers; `run` is the run inserted, merged into or found."""

    outcome: str
    gate: str
    run: Run | None = None
    observed: int | None = None
    refusal: str | None = None


@dataclass
class Model:
    agents: dict[str, str] = field(default_factory=lambda: {"ana": "active", "bob": "active"})
    paused: bool = False
    runs: list[Run] = field(default_factory=list)

    def ask(self, at, agent, reason, payload, key) -> Said:
        """ADM-2: the first of the six that decides."""
        return self._refused(agent) or self._decided(at, agent, reason, payload, key)

    def _refused(self, agent):
        """ADM-2, gates 1 and 2."""
        if agent not in self.agents:
            return Said("none", "agent_status", refusal="agent_not_found")
        if self.agents[agent] != "active":
            return Said("none", "agent_status", refusal="agent_not_wakeable")
        return Said("none", "workspace_pause", refusal="workspace_paused") if self.paused else None

    def _decided(self, at, agent, reason, payload, key):
        """ADM-2, gates 3 to 6."""
        bearer = self._bearer(key)
        if bearer and bearer.requested_at > at - DUPLICATE_LOOKBACK:
            return Said("deduped", "recent_duplicate", bearer)
        if target := self._target(at, agent, reason, payload, key):
            target.payload, target.count = payload, target.count + 1
            return Said("coalesced", "coalesce", target)
        observed = self._observed(at, reason, payload)
        if observed is not None and observed >= ASSIGNMENT_ALLOWANCE:
            return Said("rate_limited", "assignment_allowance", observed=observed)
        if bearer:
            return Said("deduped", "insert", bearer)
        run = Run(None, agent, reason, payload, key, at)
        self.runs.append(run)
        return Said("queued", "insert", run, observed)

    def _bearer(self, key):
        """ADM-3.1, ADM-6.1: the one row that has this key, if there is a key."""
        return next((run for run in self.runs if key and run.key == key), None)

    def _target(self, at, agent, reason, payload, key):
        """ADM-4: the row to merge into."""
        scope = task_scope(payload)
        if is_comment(key) or scope is NEVER_MERGES:
            return None
        like = [
            run
            for run in self.runs
            if (run.agent, run.reason, run.status, run.retry_at) == (agent, reason, "queued", None)
            and run.requested_at > at - COALESCE_WINDOW
            and not is_comment(run.key)
            and task_scope(run.payload) is not NEVER_MERGES
            and task_scope(run.payload) == scope
        ]
        return max(like, key=lambda run: (run.requested_at, run.name), default=None)

    def _observed(self, at, reason, payload):
        """ADM-5.1, ADM-5.2: how often agents assigned this task, or None for a wake that is not counted."""
        if not is_agent_assignment(reason, payload) or not names_a_task(payload):
            return None
        return sum(
            is_agent_assignment(run.reason, run.payload)
            and names_a_task(run.payload)
            and run.payload["task_id"] == payload["task_id"]
            and at - ALLOWANCE_WINDOW < run.requested_at <= at
            for run in self.runs
        )


def is_comment(key) -> bool:
    """ADM-4.1."""
    return key is not None and key.startswith("task_comment:")


def task_scope(payload):
    """ADM-4.3: the task, None for no task, or what never merges."""
    task = payload.get("task_id") if isinstance(payload, dict) else None
    if task is None or task == "":
        return None
    return task if isinstance(task, str) else NEVER_MERGES


def names_a_task(payload) -> bool:
    """ADM-5.1 (c)."""
    return isinstance(payload, dict) and isinstance(payload.get("task_id"), str) and payload["task_id"] != ""


def is_agent_assignment(reason, payload) -> bool:
    """ADM-5.1 (a), (b)."""
    return reason == "task_assigned" and isinstance(payload, dict) and payload.get("actor_type") == "agent"
