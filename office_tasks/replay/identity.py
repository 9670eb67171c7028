"""Names that make a replay recognisable: of one file, of its workspace, and of each of its events."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from office_tasks.validation import MAX_IDENTIFIER_BYTES

_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Identity:
    """One file's replay, in a database of its own or beside other workspaces.

    Task and agent ids are unique in a database. Alone in one, a replay uses the file's own, so that what is read there
    reads like the file; beside others it puts its mark before each, so that it can neither touch nor meet theirs.
    """

    file_digest: str
    shared: bool = False

    @property
    def workspace_id(self) -> str:
        """The replay's workspace."""
        return f"replay-{self._mark}-shared" if self.shared else f"replay-{self._mark}"

    @property
    def step_id(self) -> str:
        """The one step that its tasks stand on."""
        return f"{self.workspace_id}-step"

    def own(self, file_id: str) -> str:
        """Return the id under which the file's task or agent `file_id` is kept; empty stays empty."""
        if not self.shared or not file_id:
            return file_id
        marked = f"{self._mark}/{file_id}"
        if len(marked.encode()) <= MAX_IDENTIFIER_BYTES:
            return marked
        return f"{self._mark}/{_digest(file_id)}"

    def mutation_id(self, line_number: int) -> str:
        """Return the id of the event on that line: the same in every replay of the file."""
        return _digest(f"{self.file_digest}:{line_number}")

    @property
    def _mark(self) -> str:
        return self.file_digest[:_SHOWN]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
