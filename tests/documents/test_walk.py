"""Every command of the documents, in a reader's order, from a clean checkout to a rate-limited wake in Flower."""

from __future__ import annotations

import base64
import re
import shutil
import urllib.request

import pytest
import typer.main

from office_tasks.cli.main import office
from tests.documents.pages import FIRST, LAST, Step, documents, steps
from tests.documents.reader import Reader
from tests.flower.browser import browser, cells, found, missing, settled
from tests.nodes.waiting import until

LOGIN = "watcher:a-long-password"


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    someone = Reader(tmp_path_factory.mktemp("reader"))
    yield someone
    someone.leave(0)
    shutil.rmtree(someone.checkout / ".venv", ignore_errors=True)


@pytest.mark.timeout(1800)
def test_whoever_follows_the_documents_ends_in_flower(reader, tmp_path):
    """OPS-1.1: what is typed works, what is shown is seen, and the last thing seen is a rate-limited wake."""
    for page in documents():
        for step in steps(page):
            reader.do(step)
        if page == FIRST:
            reader.settle()
        elif page != LAST:
            reader.turn()
    seen = _rate_limited(reader.ports["5555"], tmp_path)
    reader.leave(0)
    left = _clean(reader)
    assert not reader.wrong, "\n\n".join(reader.wrong)
    assert left == []
    assert "('flour', 'rae', 'kim')" in seen
    assert not _commands() - {_command(typed) for typed in reader.ran}


def _clean(reader):
    """Type `make clean`, which stands in a sentence; return what is left of what the documents had made."""
    links = [link.resolve() for link in reader.checkout.glob(".data/*/elsewhere")]
    reader.do(Step("the end", "typed", "make clean"))
    made = [reader.checkout / ".venv", reader.checkout / ".data", *links]
    return [path for path in [*made, *reader.checkout.rglob("__pycache__")] if path.exists()]


def _rate_limited(port, tmp_path):
    """Return the row of the wake in Flower, as a browser shows it; without one, what Flower's API says."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/api/tasks")
    asked.add_header("Authorization", f"Basic {base64.b64encode(LOGIN.encode()).decode()}")
    until(lambda: "rate_limited" in (said := urllib.request.urlopen(asked, timeout=30).read().decode()) and said)
    if missing():
        return urllib.request.urlopen(asked, timeout=30).read().decode()
    with browser(tmp_path / "profile") as page:
        page.get(f"http://{LOGIN}@127.0.0.1:{port}/tasks")
        settled(page, lambda: cells(page, "tasks-table"))
        return found(page, "rate_limited")


def _commands():
    """Return the commands that there are, less the one that `make demo` is."""
    groups = typer.main.get_command(office).commands
    every = {name: getattr(group, "commands", None) or [""] for name, group in groups.items()}
    return {f"office {name} {inner}".strip() for name, inners in every.items() for inner in inners} - {"office demo"}


def _command(typed):
    words = re.findall(r"^(?:env (?:-u \w+ )*)?(office [a-z]+(?: [a-z]+)?)", typed)
    return next((command for command in _commands() for word in words if f"{word} ".startswith(f"{command} ")), "")
