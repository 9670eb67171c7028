"""The drawn machines are the coded ones, arrow by arrow."""

from __future__ import annotations

import re

import pytest

from db.lifecycle import RUN, SESSION, WAKE
from tests.nodes.engine import ROOT

MACHINES = {"run": RUN, "wake": WAKE, "session": SESSION}
DIAGRAM = re.compile(r"```mermaid\nstateDiagram-v2\n(.*?)```", re.DOTALL)
ARROW = re.compile(r"^    (\w+) --> (\w+): (\w+)$")
END = re.compile(r"^    (\w+) --> \[\*\]$")
BEGINNING = re.compile(r"^    \[\*\] --> (\w+)$")


@pytest.fixture(params=MACHINES)
def drawn(request):
    """A machine, and the lines of its diagram: run, wake and session, in this order."""
    diagrams = DIAGRAM.findall((ROOT / "docs" / "states.md").read_text())
    assert len(diagrams) == len(MACHINES)
    lines = dict(zip(MACHINES, diagrams, strict=True))[request.param].splitlines()
    return MACHINES[request.param], lines


def _found(pattern, lines):
    return sorted(match.groups() for line in lines if (match := pattern.match(line)))


def test_the_diagram_has_the_tables_arrows(drawn):
    """8-engineering 5, REC-2.1: not one more or less."""
    machine, lines = drawn
    arrows = {(state, move.target, event) for event, move in machine.items() for state in move.sources}
    assert _found(ARROW, lines) == sorted(arrows)


def test_the_diagram_begins_and_ends_where_the_table_does(drawn):
    """8-engineering 5, REC-2.1: a state that no event leaves is an end; every line of the diagram is understood."""
    machine, lines = drawn
    left = {state for move in machine.values() for state in move.sources}
    ends = {move.target for move in machine.values()} - left
    assert _found(END, lines) == sorted((end,) for end in ends)
    assert _found(BEGINNING, lines)
    assert [line for line in lines if not any(known.match(line) for known in (ARROW, END, BEGINNING))] == []
