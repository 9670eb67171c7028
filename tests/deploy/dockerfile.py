"""The Dockerfile, read: its stages and their instructions. What it does not know, it refuses."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from tests.nodes.engine import ROOT

KNOWN = ("RUN", "COPY", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD")


@dataclass
class Stage:
    """One stage: what it starts from, what it is called, and its instructions in their order."""

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    @property
    def user(self) -> str:
        return next((rest for instruction, rest in reversed(self.steps) if instruction == "USER"), "root")

    @property
    def command(self) -> list[str]:
        return next(json.loads(rest) for instruction, rest in reversed(self.steps) if instruction == "CMD")


def read(text: str) -> list[Stage]:
    """Return the stages of a Dockerfile."""
    stages: list[Stage] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        instruction, rest = line.split(maxsplit=1)
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append(Stage(base, name))
        elif instruction in KNOWN:
            stages[-1].steps.append((instruction, rest.strip()))
        else:
            raise ValueError(f"nobody rehearses {instruction}: teach tests/deploy/rehearsal.py")
    return stages


STAGES = read((ROOT / "Dockerfile").read_text())
DOCKERFILE = STAGES[-1]
