"""One occurrence seen by both convergent producers at once, many times over."""

from __future__ import annotations

from collections import Counter

import pytest

from office_tasks.producers.after import admit_owed, stored_wakes
from office_tasks.producers.producer import Producer
from tests.faults.waits import in_background
from tests.support import after

ROUNDS = 100


@pytest.mark.parametrize("producer", [Producer.TASK_CREATED, Producer.TASK_UPDATED])
def test_both_producers_at_once_are_one_run_each_time(acts, producer):
    """PRO-3.2, ADM-6.1: 100 occurrences for each event, each producer started first in turn: one run each time."""
    acts.create()
    acts.board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    messages = [acts.assign().result["mutation_id"] for _ in range(ROUNDS)]
    acts.board.execute("DELETE FROM pauses")
    outcomes = Counter()
    with in_background() as start:
        for n, message in enumerate(messages, 1):
            [owed] = stored_wakes(acts.engine, message)
            at = after(days=1, minutes=n)
            calls = [(acts.hear, producer, "T1", "ana", n, at), (admit_owed, acts.engine, owed, at)]
            running = [start(*call) for call in (calls if n % 2 else reversed(calls))]
            answers = [future.result() for future in running]
            event, reaction = answers if n % 2 else reversed(answers)
            assert (event.result["run_id"], event.result["key"]) == (str(reaction.run_id), f"task_assigned:T1:ana:{n}")
            outcomes.update([event.result["outcome"], str(reaction.outcome)])
    assert acts.board.count("runs") == ROUNDS
    assert outcomes["queued"] == ROUNDS
    assert set(outcomes) <= {"queued", "deduped", "coalesced"}
