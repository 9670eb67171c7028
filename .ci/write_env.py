"""Write the file of secrets that docker-compose.yml refuses to start without."""

import os
import re
import secrets
import sys
from pathlib import Path

SECRETS = ("POSTGRES_PASSWORD", "POSTGRES_WORKER_PASSWORD", "REDIS_PASSWORD", "FLOWER_PASSWORD")
BYTES = 24


def main() -> None:
    """Create the file named on the command line, readable by its owner only; to an existing one add what it lacks."""
    path = Path(sys.argv[1])
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        sys.stdout.write(_complete(path))
        return
    with os.fdopen(fd, "w") as out:
        out.writelines(_values().values())
    sys.stdout.write(f"wrote {path}; Flower's login is in it\n")


def _complete(path: Path) -> str:
    """Add the names that a newer version asks for; what is there stays, since servers were started with it."""
    before = path.read_text()
    there = set(re.findall(r"^\s*(?:export\s+)?(\w+)[ \t]*=[ \t]*\S", before, re.MULTILINE))
    # A name without a value is as good as none; of two lines of one name the later holds.
    missing = {name: line for name, line in _values().items() if name not in there}
    if not missing:
        return f"{path} exists and is kept: remove it first for new secrets\n"
    with path.open("a") as out:
        out.write("" if before.endswith("\n") or not before else "\n")
        out.writelines(missing.values())
    return f"{path} exists and is kept; added to it: {', '.join(missing)} (docs/deploying.md, Upgrading)\n"


def _values() -> dict[str, str]:
    # Hexadecimal: the passwords become parts of URLs.
    made = {name: f"{name}={secrets.token_hex(BYTES)}\n" for name in SECRETS}
    return {**made, "FLOWER_USER": "FLOWER_USER=office\n"}


if __name__ == "__main__":
    main()
