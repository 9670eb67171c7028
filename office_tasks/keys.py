"""Idempotency keys: the builders are here, and nobody formats a key by hand (PRO-1.4).

Every key holds a generation: equal for two attempts at one occurrence, different for two occurrences (PRO-1.1). It
comes from the durable row that identifies the occurrence, carried here by whoever committed that row (PRO-1.2).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from office_tasks import reasons
from office_tasks.validation import built_key

_CHARACTERS: Final = {"%25": "%", "%3A": ":", "%2C": ","}
_ESCAPES: Final = str.maketrans({character: escaped for escaped, character in _CHARACTERS.items()})
_SPAWNED: Final = "agent"


def escape(part: str) -> str:
    """Escape what separates the parts of keys and digests, so that no two tuples give one key (ADM-8.3)."""
    return part.translate(_ESCAPES)


def digest(ids: Iterable[str]) -> str:
    """Return the digest of a set of ids: the same set in any order, the same digest (PRO-1.5).

    SHA-256, in lowercase hex, of the escaped ids, sorted by their bytes and joined with commas.

    Raises:
        ValueError: an empty set is no occurrence and has no digest.
    """
    parts = sorted({escape(one).encode() for one in ids})
    if not parts:
        raise ValueError("an empty set is no occurrence")
    return hashlib.sha256(b",".join(parts)).hexdigest()


def task_assigned(task_id: str, agent_profile_id: str, generation: int) -> str:
    """Return the key of one committed assignment."""
    return _build(reasons.TASK_ASSIGNED, task_id, agent_profile_id, str(generation))


def task_auto_started(task_id: str, agent_profile_id: str, step_id: str, step_transition_id: str) -> str:
    """Return the key of one move of a task to a step that auto-starts."""
    return _build(reasons.TASK_ASSIGNED, task_id, agent_profile_id, step_id, step_transition_id)


def task_comment(comment_id: str, agent_profile_id: str) -> str:
    """Return the key of one comment for the assignee."""
    return _build(reasons.TASK_COMMENT, comment_id, agent_profile_id)


def task_mentioned(comment_id: str, agent_profile_id: str) -> str:
    """Return the key of one comment for an agent that it mentions."""
    return _build(reasons.TASK_MENTIONED, comment_id, agent_profile_id)


def task_reopened_via_comment(comment_id: str, agent_profile_id: str) -> str:
    """Return the key of one comment that came with a reopening."""
    return _build(reasons.TASK_REOPENED_VIA_COMMENT, comment_id, agent_profile_id)


def task_blockers_resolved(task_id: str, agent_profile_id: str, blocker_ids: Iterable[str]) -> str:
    """Return the key of one set of blockers, all of them done."""
    return _build(reasons.TASK_BLOCKERS_RESOLVED, task_id, agent_profile_id, digest(blocker_ids))


def task_children_completed(task_id: str, agent_profile_id: str, child_ids: Iterable[str]) -> str:
    """Return the key of one set of children, all of them terminal."""
    return _build(reasons.TASK_CHILDREN_COMPLETED, task_id, agent_profile_id, digest(child_ids))


def agent_error(failed_run_id: str, agent_profile_id: str) -> str:
    """Return the key of one failed run, for the coordinator that hears of it."""
    return _build(reasons.AGENT_ERROR, failed_run_id, agent_profile_id)


def spawned(calling_run_id: str, key: str) -> str:
    """Return an agent's key, made its calling run's own: the same literal from two runs does not collide (PRO-1.6)."""
    return _build(_SPAWNED, calling_run_id, key)


def calling_run(key: str) -> str | None:
    """Return the run that an agent's key was made for, or None for a key of another kind."""
    kind, _, rest = key.partition(":")
    return _unescape(rest.partition(":")[0]) if kind == _SPAWNED and ":" in rest else None


def _unescape(part: str) -> str:
    return re.sub("|".join(_CHARACTERS), lambda found: _CHARACTERS[found[0]], part)


def _build(kind: str, *parts: str) -> str:
    return built_key(":".join((kind, *map(escape, parts))))
