"""Idempotency keys: the builders are here, and nobody formats a key by hand (PRO-1.4)."""

from __future__ import annotations

from office_tasks.reasons import TASK_ASSIGNED
from office_tasks.validation import built_key

_ESCAPES = str.maketrans({"%": "%25", ":": "%3A", ",": "%2C"})


def escape(part: str) -> str:
    """Escape what separates the parts of keys and digests, so that no two tuples give one key (ADM-8.3)."""
    return part.translate(_ESCAPES)


def _build(kind: str, *parts: str) -> str:
    return built_key(":".join((kind, *map(escape, parts))))


def task_assigned(task_id: str, agent_profile_id: str, generation: int) -> str:
    """Return the key of one committed assignment; the generation is the one its transaction committed (PRO-1.2)."""
    return _build(TASK_ASSIGNED, task_id, agent_profile_id, str(generation))


def spawned(calling_run_id: str, key: str) -> str:
    """Return an agent's key, made its calling run's own: the same literal from two runs does not collide (PRO-1.6)."""
    return _build("agent", calling_run_id, key)
