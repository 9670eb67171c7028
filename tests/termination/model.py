"""Seats and sessions, small and slow, written from the criteria: what the real ones are compared with.

It knows nothing of SQL and shares nothing with the real ones but the words. What is executed, and when, it is told.
"""

from __future__ import annotations

from dataclasses import dataclass, field

RUNNER = "runner"


@dataclass
class Seat:
    """A seat of a task at a step; later ones come later in their list."""

    step: str | None
    role: str
    agent: str


@dataclass
class Task:
    step: str | None
    seats: list[Seat] = field(default_factory=list)


@dataclass(eq=False)
class Session:
    """One conversation; it is live until it has a reason."""

    task: str
    agent: str
    reason: str | None = None


@dataclass
class Execution:
    """One that is under way, and what it was asked."""

    task: str
    agent: str
    session: Session | None
    asked_to_stop: bool = False


@dataclass
class Owed:
    """What a mutation that committed still has to do: the rest of it may come later, or never."""

    stops: list[Execution] = field(default_factory=list)
    guard: tuple[str, str, str] | None = None


class Refusal(Exception):
    """What may not be; `kind` is the error's name."""

    def __init__(self, kind):
        super().__init__(kind)
        self.kind = kind


class Model:
    def __init__(self, agents, steps):
        """Begin with these agents, and these steps with their primary agents."""
        self.agents = dict.fromkeys(agents, "active")
        self.primary = dict(steps)
        self.templates: set[tuple[str, str, str]] = set()
        self.tasks: dict[str, Task] = {}
        self.sessions: list[Session] = []
        self.executions: dict[str, Execution] = {}

    # The question: SES-2

    def runner(self, task):
        """SES-2.1: the seat here; else the step's primary agent; else the newest seat anywhere."""
        at = self.tasks[task]
        seats = [seat for seat in at.seats if seat.role == RUNNER]
        here = [seat.agent for seat in seats if seat.step == at.step]
        anywhere = [seat.agent for seat in seats]
        return next(filter(None, [*here, self.primary.get(at.step), *reversed(anywhere)]), None)

    def slate(self, task):
        """SES-2.2, SES-2.3: who sits here, in whatever role; nobody on no step."""
        at = self.tasks[task]
        if at.step is None:
            return set()
        own = {seat.agent for seat in at.seats if seat.step == at.step}
        return own | {agent for step, _, agent in self.templates if step == at.step}

    def holds(self, task, agent):
        return agent == self.runner(task) or agent in self.slate(task)

    # What ends a session, and what keeps it: SES-1

    def live(self, task, agent):
        return next((s for s in self.sessions if (s.task, s.agent, s.reason) == (task, agent, None)), None)

    def settle(self, owed):
        """SES-3.1, then SES-1.3 and SES-1.4, as things are now. Return whether a session was ended."""
        for execution in owed.stops:
            execution.asked_to_stop = True
        return self.end_unless_held(*owed.guard) if owed.guard else None

    def end_unless_held(self, task, agent, reason):
        session = None if self.holds(task, agent) else self.live(task, agent)
        if session:
            session.reason = reason
        return session is not None

    def running(self, session):
        return any(execution.session is session for execution in self.executions.values())

    # What happens to the board; the first three are the guarded paths (SES-1.1)

    def remove(self, task, agent, role):
        at = self.tasks[task]
        if self._seat(task, agent, role) is None:
            raise Refusal("NotFound")
        guard = (task, agent, "participant_removed")
        if role != RUNNER:
            at.seats.remove(self._seat(task, agent, role))
            return Owed(guard=guard)
        self._unassign(task)
        return Owed(self._at_work(task, agent), guard)

    def claim(self, task, role, displaced, claiming):
        if role == RUNNER or displaced == claiming:
            raise Refusal("InvalidInput")
        if claiming not in self.agents or self._seat(task, displaced, role) is None:
            raise Refusal("NotFound")
        at = self.tasks[task]
        if self._seat(task, claiming, role) or (at.step, role, claiming) in self.templates:
            raise Refusal("InvalidInput")
        at.seats.remove(self._seat(task, displaced, role))
        at.seats.append(Seat(at.step, role, claiming))
        return Owed(guard=(task, displaced, "participant_seat_claimed"))

    def assign(self, task, agent):
        if agent and agent not in self.agents:
            raise Refusal("NotFound")
        at, previous = self.tasks[task], self.runner(task)
        if agent:
            at.seats = [seat for seat in at.seats if (seat.step, seat.role) != (at.step, RUNNER)]
            at.seats.append(Seat(at.step, RUNNER, agent))
        else:
            self._unassign(task)
        if previous in (None, agent):
            return Owed()
        return Owed(self._at_work(task, previous), (task, previous, "task_reassigned"))

    def create(self, task, step, agent):
        if agent and agent not in self.agents:
            raise Refusal("NotFound")
        self.tasks[task] = Task(step, [Seat(step, RUNNER, agent)] if agent else [])
        return Owed()

    def enter(self, task, step):
        self.tasks[task].step = step
        return Owed()

    def add(self, task, agent, role):
        at = self.tasks[task]
        if role == RUNNER or (agent in self.agents and at.step is None):
            raise Refusal("InvalidInput")
        if agent not in self.agents:
            raise Refusal("NotFound")
        if self._seat(task, agent, role) is None:
            at.seats.append(Seat(at.step, role, agent))
        return Owed()

    def delete(self, agent):
        """SES-1.10: unguarded, on every task; its seats stay."""
        if agent not in self.agents:
            raise Refusal("NotFound")
        del self.agents[agent]
        for session in self.sessions:
            if session.agent == agent and session.reason is None:
                session.reason = "agent_deleted"
        for execution in self.executions.values():
            execution.asked_to_stop |= execution.agent == agent
        return Owed()

    # Executions

    def is_stale(self, task, agent, reason):
        return reason == "task_assigned" and self.runner(task) != agent

    def begin(self, run, task, agent):
        """Return whether a conversation begins with it."""
        session = self.live(task, agent)
        is_new = session is None
        if is_new:
            session = Session(task, agent)
            self.sessions.append(session)
        self.executions[run] = Execution(task, agent, session)
        return is_new

    def end(self, run):
        """Return how it ends."""
        return "cancelled" if self.executions.pop(run).asked_to_stop else "finished"

    def _seat(self, task, agent, role):
        at = self.tasks[task]
        if at.step is None and role != RUNNER:
            return None
        return next((s for s in at.seats if (s.step, s.role, s.agent) == (at.step, role, agent)), None)

    def _unassign(self, task):
        self.tasks[task].seats = [seat for seat in self.tasks[task].seats if seat.role != RUNNER]

    def _at_work(self, task, agent):
        return [one for one in self.executions.values() if (one.task, one.agent) == (task, agent)]
