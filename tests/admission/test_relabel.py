"""What a merge of two actors does to the allowance: accepted, and pinned in both directions."""

from __future__ import annotations

from office_tasks.admission import ASSIGNMENT_ALLOWANCE, COALESCE_WINDOW
from tests.admission.rows import store_agent_assignments
from tests.support import T0, after

SOON = T0 + COALESCE_WINDOW / 5
LATER = after(minutes=1)


def test_a_merge_ignores_the_actor(acme):
    """ADM-4.5: a user's wake merges into an agent's row and the reverse: the actor changes, `requested_at` stays."""
    first = acme.assigned(by="user")
    assert acme.assigned(SOON, by="agent").run_id == first.run_id
    run = acme.run(first.run_id)
    assert (run["actor_type"], run["requested_at"]) == ("agent", T0)
    assert acme.assigned(SOON, by="user").run_id == first.run_id
    assert acme.run(first.run_id)["actor_type"] == "user"


def test_an_agents_wake_merged_into_a_users_row_counts_one_high(acme):
    """ADM-4.5: the merged wake consumed nothing, yet the row that it relabelled is counted."""
    store_agent_assignments(acme, *[T0] * (ASSIGNMENT_ALLOWANCE - 1))
    acme.assigned(by="user")
    assert acme.assigned(SOON, by="agent").outcome == "coalesced"
    refused = acme.assigned(LATER, agent="bob", by="agent")
    assert (refused.outcome, refused.observed) == ("rate_limited", ASSIGNMENT_ALLOWANCE)


def test_a_users_wake_merged_into_an_agents_row_counts_one_low(acme):
    """ADM-4.5: the admitted wake's row lost its label, so one more than the allowance is admitted."""
    store_agent_assignments(acme, *[T0] * (ASSIGNMENT_ALLOWANCE - 1))
    assert acme.assigned(by="agent").outcome == "queued"
    assert acme.assigned(SOON, by="user").outcome == "coalesced"
    extra = acme.assigned(LATER, agent="bob", by="agent")
    assert (extra.outcome, extra.observed) == ("queued", ASSIGNMENT_ALLOWANCE - 1)
