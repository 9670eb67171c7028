"""What the broker says: whether it answers, whether it may throw messages away, and who takes what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import redis

from office_tasks.broker import Look
from office_tasks.configuration import QUEUES
from office_tasks.doctor.finding import Finding, error, ok, warn
from office_tasks.settings import Settings

KEEPS_ALL: Final = "noeviction"
OLDEST_REDIS: Final = (6, 2)


def examine(seen: Look) -> Iterator[Finding]:
    """Check the broker and the workers that answered through it."""
    if seen.error:
        yield error("broker", f"{seen.url} does not answer: {seen.error}", "start it, or correct OFFICE_BROKER_URL")
        return
    yield ok("broker", f"{seen.url} answers")
    if seen.redis:
        yield from _redis(seen.redis)
    yield from _workers(seen)


def others(settings: Settings) -> Iterator[Finding]:
    """Check the other Redis servers that the settings name: of results, and of the event stream."""
    for check, variable, url in (
        ("results", "OFFICE_RESULT_BACKEND", settings.result_backend),
        ("events", "OFFICE_EVENTS_URL", settings.events_url),
    ):
        if url is not None and url.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
            yield _ping(check, variable, url.get_secret_value())


def _ping(check: str, variable: str, url: str) -> Finding:
    try:
        client = redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1)
        with client:
            client.ping()
    except (redis.RedisError, OSError) as fault:
        said = str(fault).partition("\n")[0]
        return error(check, f"its Redis does not answer: {said}", f"start it, or correct {variable}")
    return ok(check, "its Redis answers")


def _redis(info: Mapping[str, Any]) -> Iterator[Finding]:
    version = tuple(int(part) for part in str(info.get("redis_version", "0")).split(".")[:2])
    if version < OLDEST_REDIS:
        yield warn("Redis version", f"it is Redis {info['redis_version']}", "upgrade it to 6.2 or newer")
    policy = info.get("maxmemory_policy", "unknown")
    if policy == KEEPS_ALL:
        yield ok("Redis eviction", f"the policy is {policy}: a full Redis refuses, and loses nothing")
    else:
        yield error(
            "Redis eviction",
            f"the policy is {policy}: a full Redis throws messages away, and nobody hears of it",
            f"set `maxmemory-policy {KEEPS_ALL}` in its configuration (CONFIG SET does it until its restart)",
        )
    yield ok("Redis persistence", _persistence(info))


def _persistence(info: Mapping[str, Any]) -> str:
    if info.get("aof_enabled"):
        return "it keeps a log on disk (appendonly)"
    return "it keeps no log on disk: after a restart it may be empty; what is owed and queued is in Postgres"


def _workers(seen: Look) -> Iterator[Finding]:
    if not seen.workers:
        yield warn(
            "workers", "no worker answered within a second", "start workers for every queue, or see what ails them"
        )
        return
    untaken = [queue for queue in QUEUES if not seen.takers(queue)]
    both = [name for name in seen.takers("admission") if "execution" in seen.workers[name]]
    if untaken:
        yield warn(
            "workers", f"no worker takes {', '.join(untaken)}", f"start one: `office worker -Q {','.join(untaken)}`"
        )
    if both:
        yield warn(
            "workers",
            f"{', '.join(both)} serves both admission and execution: long runs hold up admission",
            "start two: `office worker -Q admission,recovery` and `office worker -Q execution`",
        )
    if not untaken and not both:
        yield ok("workers", f"{len(seen.workers)} answered, and take every queue")
