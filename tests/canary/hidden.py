"""What must come out nowhere, and the search for it."""

from __future__ import annotations

import base64
import sys

WRITTEN = "canary-7f3a"
DATABASE = "database-canary-2e41"
BROKER = "broker-canary-91c0"
BACKEND = "backend-canary-c36d"
FLOWER = "flower-canary-5d1c"
HIDDEN = (WRITTEN, DATABASE, BROKER, BACKEND, FLOWER)


def _encoded(word: str) -> list[str]:
    """Return the word as it would stand within base64, wherever it begins there."""
    shifted = (base64.b64encode(b"x" * shift + word.encode()).decode() for shift in range(3))
    return [word, *(each[4:-4] for each in shifted)]


SOUGHT = [form for word in HIDDEN for form in _encoded(word)]


def leaks(*said: object) -> list[str]:
    """Return the surroundings of each hidden thing in texts, or in the reprs of what is no text."""
    found = []
    for each in said:
        text = each if isinstance(each, str) else each.decode() if isinstance(each, bytes) else repr(each)
        for line in text.splitlines():
            places = [place for form in SOUGHT if (place := line.find(form)) >= 0]
            found += [line[max(0, place - 200) : place + 200] for place in places]
    return found


def program(*words: str) -> list[str]:
    """Return the command line of `office`, or with `celery` first that of Celery."""
    if words[0] == "celery":
        return [sys.executable, "-m", "celery", "-A", "office_tasks", *words[1:]]
    return [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'office'; from office_tasks.cli import main; main()",
        *words,
    ]
