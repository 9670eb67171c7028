"""Tests of the shop against a real office: `python -m pytest` in this directory."""

import pytest
import shop
from sqlalchemy.exc import IntegrityError

from office_tasks import create_task, pause_workspace
from office_tasks.testing import assert_admitted, assert_nothing_owed, assert_outcome


@pytest.fixture(autouse=True)
def studio(office):
    office.workspace("studio", workflow_id="desk")
    for agent in ("ada", "ben"):
        office.agent("studio", agent)


def test_an_order_wakes_ada(office, shop_engine):
    shop.place_order(shop_engine, "o-1")
    assert_admitted(office, agent="ada", reason="stock_check", payload={"order": "o-1"}, task=None)
    assert_nothing_owed(office)


def test_an_order_that_is_there_already_wakes_nobody(office, shop_engine):
    shop.place_order(shop_engine, "o-1")
    with pytest.raises(IntegrityError):
        shop.place_order(shop_engine, "o-1")
    assert_admitted(office)


def test_the_broker_is_away_when_an_order_comes(office, shop_engine):
    with office.broker_away():
        shop.place_order(shop_engine, "o-2")
    assert_outcome(office, "owed", agent="ada")
    office.clock.advance(seconds=5)
    office.relay()
    assert_admitted(office, agent="ada")


def test_two_reports_at_once_start_ada_once(office):
    shop.report("the door squeaks")
    shop.report("the door still squeaks")
    assert_admitted(office, reason="customer_report")
    assert_outcome(office, "coalesced", payload={"subject": "the door still squeaks"})
    office.clock.advance(seconds=6)
    shop.report("and now it fell off")
    assert_admitted(office, reason="customer_report", times=2)


def test_agents_cannot_hand_a_task_on_for_ever(office):
    create_task("studio", "Paint the door", task_id="door", workflow_id="desk")
    outcomes = []
    for taker in ("ada", "ben") * 3:
        outcomes.append(shop.hand_on("door", "ada", taker))
        office.clock.advance(seconds=10)
    assert outcomes == ["queued"] * 5 + ["rate_limited"]
    office.clock.advance(minutes=10)
    assert shop.hand_on("door", "ben", "ada") == "queued"


def test_the_till_rings_while_the_shop_is_closed(office):
    pause_workspace("studio", "closed")
    shop.ring("a_customer_waits")
    assert_outcome(office, "workspace_paused", reason="a_customer_waits")
