"""The life of runs and sessions as the criteria have it, small enough to be read: what the real one is held against."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

LEASE, GRACE = dt.timedelta(seconds=60), dt.timedelta(seconds=30)
GAPS = [dt.timedelta(minutes=minutes) for minutes in (2, 10, 30, 120)]


@dataclass
class Run:
    """One run; `holder` is the lease that counts, `session` the one it executes in."""

    id: object
    agent: str
    task: str | None
    at: dt.datetime
    status: str = "queued"
    attempt: int = 0
    retry_at: dt.datetime | None = None
    holder: object = None
    expires: dt.datetime | None = None
    asked_at: dt.datetime | None = None
    session: object = None

    def leave(self, status):
        self.status, self.holder, self.expires = status, None, None

    def settle(self, status):
        """End as `status`, or cancelled when it was asked to stop; return how."""
        self.leave("cancelled" if self.asked_at else status)
        return self.status

    def is_stale(self, now):
        late = self.asked_at is not None and self.asked_at <= now - GRACE
        return self.status == "claimed" and (self.expires <= now or late)


@dataclass
class Office:
    """All runs, who may be woken and how often at once, and the sessions by pair, live ones only."""

    runs: dict = field(default_factory=dict)
    limits: dict = field(default_factory=lambda: {"ana": 1, "bob": 2})
    paused: set = field(default_factory=set)
    live: dict = field(default_factory=dict)
    ended: set = field(default_factory=set)

    def executing(self, agent):
        return [run for run in self.runs.values() if run.agent == agent and run.status == "claimed"]

    def next(self, now):
        """Return the run whose turn it is, or None (REC-2.2)."""
        free = {agent for agent, most in self.limits.items()
                if agent not in self.paused and len(self.executing(agent)) < most}  # fmt: skip
        waiting = [run for run in self.runs.values() if run.status == "queued" and run.agent in free]
        due = [run for run in waiting if run.retry_at is None or run.retry_at <= now]
        return min(due, key=lambda run: (run.at, run.id), default=None)

    def claim(self, run, begun, now):
        run.status, run.attempt, run.retry_at = "claimed", run.attempt + 1, None
        run.holder, run.expires = begun.run.lease_token, now + LEASE
        if run.task:
            pair = run.task, run.agent
            assert begun.session.is_new == (pair not in self.live)
            run.session = self.live.setdefault(pair, begun.session.id)
            assert begun.session.id == run.session

    def session_states(self):
        """Return the state that each session is to be in (REC-2.5)."""
        busy = {run.session for run in self.runs.values() if run.status == "claimed"}
        live = {one: "running" if one in busy else "idle" for one in self.live.values()}
        return live | dict.fromkeys(self.ended, "completed")
