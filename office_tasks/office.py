"""The composition root: settings read once, an engine made once a process, both passed down."""

from __future__ import annotations

from functools import cached_property

from sqlalchemy import Engine

from db.engine import make_engine
from office_tasks.settings import Settings
from office_tasks.stream import EventStream


class Office:
    """What a process works with. Making one opens nothing."""

    def __init__(self, settings: Settings, engine: Engine | None = None) -> None:
        self.settings = settings
        self._engine = engine

    @cached_property
    def engine(self) -> Engine:
        """The engine, with a connection for each thread that this process may work in."""
        if self._engine is not None:
            return self._engine
        return make_engine(
            self.settings.database_url.get_secret_value(),
            pool_size=self.settings.concurrency,
            application_name="office",
        )

    @cached_property
    def stream(self) -> EventStream | None:
        """Where events go out; None when nothing that speaks Redis is named."""
        url = self.settings.stream_url
        return EventStream(url) if url else None
