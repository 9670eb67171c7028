"""What Python takes a payload's task, scope and actor for is what the schema generates, for any JSON."""

from __future__ import annotations

import uuid

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from tests.support import T0, Board

# Text that Postgres can hold: no NUL, no surrogate. Short, so that a `task_id` stays an identifier.
words = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=8)
numbers = st.integers() | st.integers(-(10**40), 10**40) | st.floats(-1e15, 1e15, allow_nan=False)
scalars = st.none() | st.booleans() | numbers | words
named = st.sampled_from(["task_id", "actor_type", "actor_id", "agent", "T1", "", "TASK_ID"])
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(named | words, inner, max_size=4),
    max_leaves=12,
)
naming = st.fixed_dictionaries({}, optional={"task_id": anything, "actor_type": anything | named, "x": anything})

INSERT = text("""
    INSERT INTO runs (id, agent_profile_id, reason, payload, requested_at)
    VALUES (:id, 'ana', 'r', CAST(:payload AS jsonb), :at) RETURNING payload, task_id, task_scope, actor_type""")


@given(payload=anything | naming)
@settings(
    max_examples=250, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_python_and_the_schema_read_a_payload_alike(connection, payload):
    """ADM-8.1: the generated columns equal admission's own reading, and the payload comes back as it was sent."""
    asked = Board.wake(payload=payload)
    stored = connection.execute(INSERT, {"id": uuid.uuid4(), "payload": asked.payload, "at": T0}).one()
    assert (stored.task_id, stored.task_scope, stored.actor_type) == (asked.task_id, asked.task_scope, asked.actor_type)
    assert stored.payload == ({} if payload is None else payload)
