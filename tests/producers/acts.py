"""The producers, each called in one line, as one message of its own, a minute after the last unless told when."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from office_tasks.ids import new_id
from office_tasks.producers import assignments, bare, comments, creation, inbound, statuses, steps
from office_tasks.producers.producer import Producer
from tests.support import Board, after


@dataclass
class Did:
    """What a producer returned, and the wakes that it wrote, as rows in their order."""

    result: dict | str
    wakes: list[dict] = field(default_factory=list)

    @property
    def woken(self) -> list[tuple[str, str, str | None]]:
        """Whom, why and how it came out; ordered."""
        return sorted((wake["agent_profile_id"], wake["reason"], wake["outcome"]) for wake in self.wakes)

    def wake(self, reason: str, keyless: bool | None = None) -> dict:
        """Return the one wake of that reason; `keyless` chooses when there are two."""
        found = [wake for wake in self.wakes if wake["reason"] == reason and keyless in (None, wake["key"] is None)]
        assert len(found) == 1, (reason, found)
        return found[0]


class Acts:
    """What can be done to a board. Agents that act are named by `by`; nobody named is the user."""

    def __init__(self, board: Board, engine=None) -> None:
        self.board = board
        self.engine = engine or board.engine
        self._messages = 0

    def assign(self, task="T1", agent="ana", by="", at=None) -> Did:
        return self._mutate(assignments.assign_task, task, agent, by, at=at)

    def create(self, task="T1", assignee="", by="", at=None, **places) -> Did:
        places = {"step_id": "start", **places}
        more = {"task_id": task, "assignee_id": assignee, "caller_agent_id": by, **places}
        return self._mutate(creation.create_task, "acme", "a task", at=at, **more)

    def onboard(self, agent="ana", at=None) -> Did:
        return self._mutate(creation.onboard_task, "acme", agent, "welcome", at=at)

    def enter(self, task="T1", step="start", transition: object = None, at=None) -> Did:
        return self._mutate(steps.enter_step, task, step, transition, at=at)

    def status(self, status, task="T1", by="", comment="", body="", at=None) -> Did:
        more = {"comment_id": comment, "comment_body": body}
        return self._mutate(statuses.set_task_status, task, status, by, at=at, **more)

    def comment(self, comment="c1", body="hello", by="", task="T1", at=None) -> Did:
        author = ("agent", by) if by else ("user", "ursula")
        return self._mutate(comments.add_comment, task, comment, body, *author, at=at)

    def hear(self, producer=Producer.TASK_UPDATED, task="T1", assignee=None, generation=None, at=None) -> Did:
        said = inbound.event(producer, task, assignee, generation)
        asked = inbound.heard(self.engine, str(new_id()), said)
        return Did(asked) if isinstance(asked, str) else self.ask(asked, at)

    def ask(self, wake, at=None) -> Did:
        """Admit a bare wake."""
        result = bare.enqueue(self.engine, wake, instant=at or self._next()[1])
        return Did(result, self.board.rows("SELECT * FROM wakes WHERE id = :id", id=wake.id))

    def block(self, task: str, *blockers: str) -> None:
        for blocker in blockers:
            self.board.execute(
                "INSERT INTO blockers (task_id, blocker_id) VALUES (:task, :blocker)", task=task, blocker=blocker
            )

    def seat(self, role: str, agent: str, task: str | None = "T1", step: str | None = "start") -> None:
        self.board.execute(
            "INSERT INTO seats (id, task_id, step_id, role, agent_profile_id) "
            "VALUES (:id, :task, :step, :role, :agent)",
            id=new_id(), task=task, step=step, role=role, agent=agent,
        )  # fmt: skip

    def start(self, did: Did) -> None:
        """Claim the one run that was queued, at once, so that nothing merges into it any more."""
        [run_id] = did.result["runs"]
        self.board.set_status(run_id, "claimed")
        self.board.execute("UPDATE runs SET claimed_at = requested_at WHERE id = :id", id=run_id)

    def generation(self, task="T1") -> int:
        return self.board.rows("SELECT assignment_generation AS n FROM tasks WHERE id = :id", id=task)[0]["n"]

    def _mutate(self, producer, *args, at: dt.datetime | None, **more) -> Did:
        message, instant = self._next()
        result = producer(self.engine, message, *args, instant=at or instant, **more)
        rows = self.board.rows("SELECT * FROM wakes WHERE mutation_id = :id ORDER BY id", id=message)
        return Did(result, rows)

    def _next(self) -> tuple[str, dt.datetime]:
        self._messages += 1
        return f"m{self._messages}", after(minutes=self._messages)
