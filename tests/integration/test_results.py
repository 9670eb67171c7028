"""Results are small, are JSON, and go away by themselves (R06)."""

from __future__ import annotations

import pytest

from office_tasks import admin
from tests.nodes.waiting import until

CALLS = 1_000


def all_kinds(caller):
    """Ask for every outcome and some refusals; return the results."""
    for number in range(6):
        admin.create_agent(caller.board.engine, "acme", f"a{number}")
    admin.create_agent(caller.board.engine, "acme", "sam", status="stopped")
    by_agent = {"task_id": "T1", "actor_type": "agent", "actor_id": "bob"}
    # The sixth is one more than the allowance.
    limited = [caller.send("queue_run", f"a{number}", "task_assigned", by_agent) for number in range(6)]
    return [
        *limited,
        *(
            caller.send("queue_run", "ana", "manual_resume", {"n": number % 7}, f"k{number % 50}")
            for number in range(CALLS)
        ),
        *(caller.send("queue_run", agent, "manual_resume") for agent in ("sam", "nobody", "")),
    ]


@pytest.mark.timeout(240)
@pytest.mark.office_worker(concurrency=1)
def test_a_thousand_calls_leave_nothing_that_stays(worker, caller, backend):
    """R06: the result of each outcome and of each refusal is there for its caller, and every key expires."""
    found = [each.get(timeout=120, propagate=False) for each in all_kinds(caller)]
    outcomes = {each["outcome"] for each in found if isinstance(each, dict)}
    assert outcomes == {"queued", "coalesced", "deduped", "rate_limited"}
    assert [each["outcome"] for each in found[:6]] == ["queued"] * 5 + ["rate_limited"]
    assert [type(each).__name__ for each in found[-3:]] == ["AgentNotWakeable", "AgentNotFound", "InvalidInput"]
    assert len([each for each in found if isinstance(each, dict)]) == 6 + CALLS
    redis = backend.container.client
    kept = until(lambda: redis.keys("celery-task-meta-*"), what="results")
    assert len(kept) >= CALLS
    pipeline = redis.pipeline()
    for key in redis.keys("*"):
        pipeline.ttl(key)
    lasting = [ttl for ttl in pipeline.execute() if not 0 <= ttl <= 3_600]
    assert lasting == []
