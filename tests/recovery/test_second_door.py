"""C11: no producer walks past a pause; a bare wake is refused and counted, what a mutation owes waits for the end."""

from __future__ import annotations

from contextlib import suppress

import pytest

from office_tasks.errors import WorkspacePaused
from office_tasks.producers.producer import Producer
from tests.admission.telling import REFUSALS, listening
from tests.producers.acts import Acts
from tests.producers.table import TABLE


@pytest.mark.parametrize("row", [row for row in TABLE if row.producer is not Producer.RECOVERY_SWEEP], ids=str)
def test_no_producer_inserts_a_run_in_a_pause(board, row):
    """C11, PRO-6.4: every producer, each of its wakes; the sweep's own are in test_sweep.py."""
    board.execute("INSERT INTO pauses (workspace_id) VALUES ('acme')")
    with listening() as told, suppress(WorkspacePaused):
        list(row.occurrences(Acts(board)))
    wakes = board.wakes()
    assert wakes, "it asked"
    assert board.count("runs") == 0
    refused = [wake["refusal"] for wake in wakes if wake["state"] == "decided"]
    assert set(refused) <= {"workspace_paused"}
    assert sum(by for (name, _), by in told.moved.items() if name == REFUSALS) == len(refused)
    assert all(wake["state"] in ("owed", "decided") for wake in wakes)
