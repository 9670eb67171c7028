"""The command line, `office`. Each command imports what it needs when it runs: `--help` and `--version` load little."""

from office_tasks.cli.main import main

__all__ = ["main"]
