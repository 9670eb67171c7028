"""The documents say what the code says: tables, links and commands do not drift."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import typer.main

from db.states import OUTCOMES
from office_tasks import errors
from office_tasks.admission import GATES, Outcome
from office_tasks.cli.main import office
from office_tasks.settings import Settings

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCUMENTS = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")})


def table(document: str, first: str) -> list[list[str]]:
    """Return the rows of the table whose first column is headed `first`."""
    lines = iter(document.splitlines())
    next(line for line in lines if line.startswith(f"| {first} |"))
    next(lines)
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


def default_of(field) -> str:
    value = field.default
    if value is None:
        return ""
    return f"`{value.get_secret_value() if hasattr(value, 'get_secret_value') else value}`"


def test_the_table_of_settings_is_the_settings():
    shown = {name: default for name, default, _ in table(README, "variable")}
    assert shown == {f"`OFFICE_{name.upper()}`": default_of(field) for name, field in Settings.model_fields.items()}


def test_the_table_of_errors_is_the_errors():
    shown = [row[0] for row in table(README, "error")]
    classes = inspect.getmembers(errors, lambda member: inspect.isclass(member) and issubclass(member, Exception))
    ours = sorted(f"`{name}`" for name, kind in classes if kind.__module__ == errors.__name__)
    assert sorted(shown) == ours


def test_the_table_of_outcomes_is_the_outcomes():
    assert [row[0] for row in table(README, "outcome")] == [f"`{outcome.value}`" for outcome in Outcome]
    assert tuple(outcome.value for outcome in Outcome) == OUTCOMES


def test_the_table_of_gates_is_the_gates_in_their_order():
    """ADM-2.1: the document that holds the contract lists them as the code does."""
    shown = [(row[0], row[1]) for row in table((ROOT / "docs/admission.md").read_text(), "#")]
    assert shown == [(str(number), f"`{gate.decide.__name__}`") for number, gate in enumerate(GATES, 1)]


def test_the_table_of_commands_is_the_commands():
    group = typer.main.get_command(office)
    there = set()
    for name, command in group.commands.items():
        there |= {f"{name} {inner}" for inner in getattr(command, "commands", {})} or {name}
    shown = set()
    for cell, *_ in table(README, "command"):
        for words in re.findall(r"`office ([^`]+)`", cell):
            parent, _, inner = words.replace("\\|", "|").partition(" ")
            shown |= {f"{parent} {name}" if name else parent for name in inner.split("|")}
    assert shown == there


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document):
    for target, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", document.read_text()):
        named = document.parent / target if target else document
        assert named.exists(), target
        assert not heading or heading in _anchors(named.read_text()), f"{target}#{heading}"


def _anchors(text: str) -> set[str]:
    """Return the anchors of a document's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
