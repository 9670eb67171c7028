"""What an operator does: logs in to Flower, finds a rate-limited wake by its outcome, and opens the Admissions tab."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By

from db import jobs
from db.engine import autocommit
from office_tasks import admin
from tests.flower.browser import browser, cells, found, missing, settled
from tests.flower.flower import PASSWORD, USER
from tests.nodes.waiting import until

# `OFFICE_SCREENSHOT=docs/flower-admissions.png` keeps the picture that the documents show.
KEPT = os.environ.get("OFFICE_SCREENSHOT")

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "a browser is there")


@pytest.fixture
def page(tmp_path):
    with browser(tmp_path / "profile") as driver:
        yield driver


def furnish(caller):
    """Let every kind of row be there: a redelivery, a merge, a refusal, six assignments by an agent, a swept task."""
    caller.ask("create_task", "acme", "The sixth wake is one too many", task_id="T1", step_id="start")
    for agent in ("ben", "cleo", "dan", "eli", "fay", "gus"):
        admin.create_agent(caller.board.engine, "acme", agent)
        caller.ask("assign_task", "T1", agent, "ana")
    for _ in range(2):
        caller.ask("queue_run", "ana", "nightly_report", {"night": 1}, "report:1")
    caller.error("queue_run", "nobody", "manual_resume")
    with autocommit(caller.board.engine) as connection:
        jobs.succeeded(connection, "recovery.recover_unstarted_tasks", {"found": 2, "woken": 1, "backing_off": 1})
        jobs.succeeded(connection, "recovery.relay_owed", {"settled": 0, "admitted": 1, "published": 9})


def columns(page):
    heads = page.find_elements(By.CSS_SELECTOR, ".dataTables_scrollHead th")
    return [head.get_attribute("data-column") for head in heads]


def test_a_rate_limited_wake_is_found_by_its_outcome(worker, caller, flower, page, tmp_path):
    until(lambda: worker.hostname() in flower.visit("/api/workers?refresh=1").body, what="the worker in Flower")
    furnish(caller)
    until(lambda: "rate_limited" in flower.visit("/api/tasks").body, what="the wake in Flower")

    page.get(f"http://127.0.0.1:{flower.port}/tasks")
    assert "tasks-table" not in page.page_source
    page.get(f"http://{USER}:{PASSWORD}@127.0.0.1:{flower.port}/tasks")
    settled(page, lambda: len(cells(page, "tasks-table")) > 3)
    settled(page, lambda: columns(page)[:5] == ["name", "state", "result", "runtime", "received"])

    row = found(page, "rate_limited")
    assert "SUCCESS rate_limited · {" in row
    assert "('T1', 'gus', 'ana')" in row

    page.find_element(By.LINK_TEXT, "Admissions").click()
    assert page.title == "Admissions · Flower"
    assert page.find_element(By.CSS_SELECTOR, "nav .active").text == "Admissions"
    assert "rate_limited task_assigned 1 1" in cells(page, "outcomes")
    assert "deduped custom 1 1" in cells(page, "outcomes")
    assert cells(page, "refusals") == ["agent_not_found manual_resume 1 1"]
    assert page.find_element(By.ID, "owed").text == "0 to be relayed; 0 held by a pause"
    swept = next(row for row in cells(page, "recovery") if row.startswith("recovery.recover_unstarted_tasks"))
    assert swept.endswith("s ago found 2, woken 1, backing off 1")
    assert "recovery.purge_history never is beat running?" in cells(page, "recovery")

    picture = Path(KEPT or tmp_path / "admissions.png")
    assert page.save_screenshot(str(picture))
    assert picture.stat().st_size > 10_000
