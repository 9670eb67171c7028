"""Results are small, are JSON, and go away by themselves (R06)."""

from __future__ import annotations

from functools import partial

import pytest

from office_tasks import admin
from tests.nodes.waiting import until

CALLS = 1_000


def all_kinds(caller):
    """Ask for every outcome and some refusals; return the results."""
    admin.create_agent(caller.board.engine, "acme", "sam", status="stopped")
    assigned = partial(caller.send, "queue_run", reason="task_assigned")
    by_agent = {"task_id": "T1", "actor_type": "agent", "actor_id": "bob"}
    for number in range(6):
        admin.create_agent(caller.board.engine, "acme", f"a{number}")
        assigned(agent_profile_id=f"a{number}", payload=by_agent).get(timeout=30)
    return [
        *(
            caller.send("queue_run", "ana", "manual_resume", {"n": number % 7}, f"k{number % 50}")
            for number in range(CALLS)
        ),
        *(caller.send("queue_run", agent, "manual_resume") for agent in ("sam", "nobody", "")),
    ]


@pytest.mark.timeout(240)
def test_a_thousand_calls_leave_nothing_that_stays(worker, caller, backend):
    found = [each.get(timeout=120, propagate=False) for each in all_kinds(caller)]
    outcomes = {each["outcome"] for each in found if isinstance(each, dict)}
    assert {"queued", "deduped"} <= outcomes
    assert sum(isinstance(each, Exception) for each in found) == 3
    redis = backend.container.client
    kept = until(lambda: redis.keys("celery-task-meta-*"), what="results")
    assert len(kept) >= CALLS
    pipeline = redis.pipeline()
    for key in redis.keys("*"):
        pipeline.ttl(key)
    lasting = [ttl for ttl in pipeline.execute() if not 0 <= ttl <= 3_600]
    assert lasting == []
