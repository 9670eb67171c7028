"""The test's side of an execution: asks for runs, signals, and sees what handlers did."""

from __future__ import annotations

import json
import uuid
from itertools import count
from pathlib import Path
from typing import Any

from office_tasks.execution import signals
from recovery.rescue import rescue_once
from tests.nodes.waiting import until
from tests.support import Board, after


class Desk:
    """One office, its broker's client, and the directory that handlers write to."""

    def __init__(self, board: Board, app: Any, directory: Path) -> None:
        self.board = board
        self.app = app
        self.directory = directory
        self._numbers = count()

    def signal(self, times: int = 1) -> None:
        """Say that some run may start."""
        for _ in range(times):
            self.app.send_task(signals.TASK, queue=signals.QUEUE, ignore_result=True)

    def ask(self, do: str, agent: str = "ana", **payload: Any) -> uuid.UUID:
        """Queue a run whose handler does so, later than those before it; say nothing to any worker."""
        number = next(self._numbers)
        answer = self.board.ask(after(seconds=number), agent=agent, reason=f"r-{number}", payload={"do": do, **payload})
        assert answer.run_id, answer
        return answer.run_id

    def start(self, do: str, agent: str = "ana", **payload: Any) -> uuid.UUID:
        """Queue a run and say so."""
        run_id = self.ask(do, agent, **payload)
        self.signal()
        return run_id

    def begin(self, do: str, agent: str = "ana", **payload: Any) -> uuid.UUID:
        """Start a run and wait until its handler has begun."""
        run_id = self.start(do, agent, **payload)
        self.until_began(run_id)
        return run_id

    def told(self, run_id: uuid.UUID, what: str = "began") -> list[dict[str, Any]]:
        """Return what handlers said of a run: by default their starts."""
        log = self.directory / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [line for line in map(json.loads, lines) if (line["run_id"], line["what"]) == (str(run_id), what)]

    def attempts(self, run_id: uuid.UUID, what: str = "began") -> list[int]:
        """Return the attempts that began, or ended."""
        return [line["attempt"] for line in self.told(run_id, what)]

    def until_began(self, run_id: uuid.UUID, attempt: int = 1, timeout: float = 30) -> None:
        """Wait until the handler of this attempt has begun."""
        until(lambda: attempt in self.attempts(run_id), timeout, f"attempt {attempt} of {run_id} begins")

    def until_status(self, run_id: uuid.UUID, status: str, timeout: float = 30) -> dict[str, Any]:
        """Wait until the run has the status; return its row."""
        until(lambda: self.board.run(run_id)["status"] == status, timeout, f"{run_id} is {status}")
        return self.board.run(run_id)

    def ends(self, run_id: uuid.UUID, timeout: float = 30) -> dict[str, Any]:
        """Wait until the run is not claimed any more; return its row."""
        until(lambda: self.board.run(run_id)["status"] not in ("queued", "claimed") or self.board.run(run_id)["error"],
              timeout, f"{run_id} ends")  # fmt: skip
        return self.board.run(run_id)

    def open_gate(self) -> None:
        """Let go whoever holds, and whoever would."""
        (self.directory / "gate").touch()

    def lapse(self, run_id: uuid.UUID) -> dict[str, int]:
        """Let the lease of a run run out, as a minute without its worker would, and rescue what is stale."""
        self.board.execute("UPDATE runs SET lease_expires_at = now() WHERE id = :id", id=run_id)
        return rescue_once(self.board.engine)
