"""Virtual time for many ticks: engines whose connections all see one instant, which the test moves."""

from __future__ import annotations

from sqlalchemy import Engine, event

from tests.support import T0, after


class VirtualTime:
    """An instant that every engine under it takes for the present."""

    def __init__(self) -> None:
        self.now = T0

    def move(self, **delta) -> None:
        """Go to the instant that much after T0."""
        self.now = after(**delta)

    def rule(self, engine: Engine) -> Engine:
        """Have the connections of `engine` live at this instant, from each checkout on."""
        event.listen(engine, "checkout", self._tell)
        return engine

    def _tell(self, connection, _record, _proxy) -> None:
        before, connection.autocommit = connection.autocommit, True
        connection.execute("SELECT set_config('office.now', %s, false)", (self.now.isoformat(),))
        connection.autocommit = before
