"""Who asked for a wake: defined here, for `office why`, its JSON and the assertions of `office_tasks.testing`."""

from __future__ import annotations

from typing import Final, NamedTuple

from office_tasks import keys
from office_tasks.admission.wake import USER
from office_tasks.producers.producer import Producer
from office_tasks.why.words import Row


class Causer(NamedTuple):
    """Who asked: an `agent`, a `user`, a `run` or the `office` itself; both None when nobody is named."""

    type: str | None
    id: str | None = None

    def __str__(self) -> str:
        """Return it as a sentence names it."""
        return f"{self.type} {self.id or ''}".rstrip() if self.type else "nobody that is named"


NOBODY: Final = Causer(None)


def causer(wake: Row) -> Causer:
    """Return who asked for a wake.

    Whoever the payload names, then whoever caused the mutation that owes it. A payload says so only for an assignment
    and at the doors (PRO-3.1): for every other producer the mutation alone knows, and an absent caller is the user.
    """
    # Its payload is the old run's, and names who asked for that.
    if wake["producer"] == Producer.MANUAL_RESUME:
        return Causer(USER)
    if run_id := _calling_run(wake):
        return Causer("run", run_id)
    if wake["actor_type"]:
        return Causer(wake["actor_type"], wake["actor_id"])
    # The door for trusted code has no caller to be absent, in a transaction of theirs either.
    if wake["producer"] == Producer.QUEUE_RUN or wake["mutation_actor_type"] is None:
        return NOBODY
    return Causer(wake["mutation_actor_type"], wake["mutation_actor_id"])


def _calling_run(wake: Row) -> str | None:
    return keys.calling_run(wake["key"]) if wake["producer"] == Producer.SPAWN_RUN and wake["key"] else None
