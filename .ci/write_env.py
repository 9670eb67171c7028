"""Write the file of secrets that docker-compose.yml refuses to start without."""

import os
import secrets
import sys
from pathlib import Path

SECRETS = ("POSTGRES_PASSWORD", "REDIS_PASSWORD", "FLOWER_PASSWORD")
BYTES = 24


def main() -> None:
    """Create the file named on the command line, readable by its owner only; an existing one is kept."""
    path = Path(sys.argv[1])
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        sys.stdout.write(f"{path} exists and is kept: remove it first for new secrets\n")
        return
    with os.fdopen(fd, "w") as out:
        # Hexadecimal: the passwords become parts of URLs.
        out.writelines(f"{name}={secrets.token_hex(BYTES)}\n" for name in SECRETS)
        out.write("FLOWER_USER=office\n")
    sys.stdout.write(f"wrote {path}; Flower's login is in it\n")


if __name__ == "__main__":
    main()
