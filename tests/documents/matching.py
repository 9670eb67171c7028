"""Compare what a document shows with what was seen, where ids, instants and durations are another time's."""

from __future__ import annotations

import re

ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
PASSING = (
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)?"), "<instant>"),
    (re.compile(r"\b\d+(?:\.\d+)? (ms|s|min|h)\b"), r"<some> \1"),
    (re.compile(r"(127\.0\.0\.1|localhost):\d+"), r"\1:<port>"),
    (re.compile(r"@[\w.-]+"), "@<host>"),
    (re.compile(r" +"), " "),
    (re.compile(r"-{3,}|─+"), "<rule>"),
    # How often beat ticked by then, and when Postgres last counted its rows, is chance.
    (re.compile(r"<some> (?:s|min) ago: .*|never succeeded$"), "<a tick>"),
    (re.compile(r"(admission|recovery|execution) \d+"), r"\1 <some>"),
    (re.compile(r"\d+ (mutations to settle|events to send)"), r"<some> \1"),
    (re.compile(r"ended, about: .*"), "ended, about: <some>"),
    (re.compile(r"last hour wakes: .*"), "last hour wakes: <some>"),
)
REST = "..."


class Ids(dict[str, str]):
    """The ids of the documents, and which were meant by them this time."""

    def put_into(self, command: str) -> str:
        """Return a command with this time's ids; raise `LookupError` for one that nothing printed before."""

        def present(found: re.Match[str]) -> str:
            if found[0] not in self:
                raise LookupError(f"no output before shows the id {found[0]}")
            return self[found[0]]

        return ID.sub(present, command)

    def agree(self, told: str, seen: str) -> bool:
        """Tell whether two lines are the same but for what passes, and remember which ids stand for which."""
        if _lasting(told) != _lasting(seen):
            return False
        pairs = set(zip(ID.findall(told), ID.findall(seen), strict=True))
        meant = dict(pairs)
        if len(meant) < len(pairs) or any(self.get(one, other) != other for one, other in pairs):
            return False
        self.update(meant)
        return True

    def differ(self, told: str, seen: str) -> str:
        """Return the first line of `told` that was not seen; "" when all were. A line `...` stands for any number."""
        lines = [line.rstrip() for line in seen.strip().splitlines()]
        skipping = False
        for line in told.strip().splitlines():
            if line.strip() == REST:
                skipping = True
                continue
            while lines and skipping and not self.agree(line, lines[0]):
                lines.pop(0)
            if not lines or not self.agree(line, lines.pop(0)):
                return line or "(an empty line)"
            skipping = False
        return "" if skipping or not lines else f"nothing more, but there was: {lines[0]}"


def _lasting(line: str) -> str:
    line = ID.sub("<id>", line.rstrip())
    for pattern, name in PASSING:
        line = pattern.sub(name, line)
    return line
