"""Follow the office's events: what happened to which task, and which of its fields changed.

    OFFICE_BROKER_URL=redis://localhost:6379/0 python examples/follow_events.py [LAST_ID]

An event may come twice, so remember the highest `id` of each task and pass over what is not higher. It says that
something changed, never to what: read the board for that. Begin again from the last stream id that you dealt with.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress

from redis import Redis

STREAM = "office:events"


def events(redis: Redis, position: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each stream id and event as it comes, beginning after `position`."""
    while True:
        for _, entries in redis.xread({STREAM: position}, block=1_000) or []:
            yield from entries
            position = entries[-1][0]


def follow(redis: Redis, position: str) -> None:
    """Print each event once."""
    seen: dict[str, int] = {}
    for at, event in events(redis, position):
        if int(event["id"]) > seen.get(event["task_id"], 0):
            seen[event["task_id"]] = int(event["id"])
            print(at, event["type"], event["task_id"], event["changed"], flush=True)


if __name__ == "__main__":
    url = os.environ.get("OFFICE_BROKER_URL", "redis://localhost:6379/0")
    with suppress(KeyboardInterrupt):
        follow(Redis.from_url(url, decode_responses=True), sys.argv[1] if len(sys.argv) > 1 else "$")
