"""The documents in a reader's order, and what each of them tells to type."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
# The README first, for its office is what the others go on with; Flower last, since it shows what was done.
FIRST, LAST = "README.md", "docs/flower.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# ([\w/.-]+\.py)\n")


class Step(NamedTuple):
    """One thing to do: where it stands, whether it is typed or is Python, the text, and what it is said to print."""

    at: str
    kind: str
    text: str
    told: str | None = None


def documents() -> list[str]:
    """Return all documents, by their path within the checkout, in the order in which the README names them."""
    named = re.findall(r"\]\((docs/[\w./-]+\.md)\)", (ROOT / FIRST).read_text())
    others = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md"))
    return [FIRST, *(name for name in dict.fromkeys([*named, *others]) if name != LAST), LAST]


def steps(name: str) -> Iterator[Step]:
    """Yield what a document tells to do, in its order."""
    text = (ROOT / name).read_text()
    for fence in FENCE.finditer(text):
        language, body = fence.groups()
        line = text.count("\n", 0, fence.start()) + 2
        if language in READ:
            yield from READ[language](name, line, body)


def _typed(name: str, line: int, body: str) -> Iterator[Step]:
    """`sh`: commands, each as many lines long as the shell wants."""
    command, began = "", line
    for number, text in enumerate(body.splitlines(), line):
        began = began if command else number
        command += f"{text}\n"
        if _complete(command):
            if command.strip() and not command.startswith("#"):
                yield Step(f"{name}:{began}", "typed", command.strip())
            command = ""
    if command:
        yield Step(f"{name}:{began}", "typed", command.strip())


def _shown(name: str, line: int, body: str) -> Iterator[Step]:
    """`console`: after a `$` a command, under it what it prints."""
    for part in re.split(r"^(?=\$ )", body, flags=re.MULTILINE):
        command, _, told = part.partition("\n")
        if command.startswith("$ "):
            yield Step(f"{name}:{line}", "typed", command[2:].strip(), told.rstrip())
        line += part.count("\n")


def _python(name: str, line: int, body: str) -> Iterator[Step]:
    """`python`: a file, when its first line names one; else a script, each `print` of which says what it prints."""
    if named := NAMED.match(body):
        yield Step(f"{name}:{line}", "file", body, named[1])
    else:
        prints = re.findall(r"^ *print\(.*\)  # (.*)$", body, re.MULTILINE)
        yield Step(f"{name}:{line}", "python", body, "\n".join(prints))


def _complete(command: str) -> bool:
    checked = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True, check=False)
    return checked.returncode == 0 and not checked.stderr and not command.endswith("\\\n")


READ = {"sh": _typed, "console": _shown, "python": _python}
