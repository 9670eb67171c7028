"""`office worker`, `beat` and `flower`: they print the Celery command they are, then become it."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import typer

from office_tasks.cli.output import say

_PASS_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True}
_QUEUES: Final = ("-Q", "--queues")
_POOL: Final = ("-P", "--pool")
_LOG_LEVEL: Final = ("-l", "--loglevel")
_BASIC_AUTH: Final = ("--basic_auth", "--basic-auth")
# Options of Celery's and Flower's whose value may be a secret, or a URL with a password in it.
_SECRET: Final = re.compile(r"--[\w-]*(?:auth|secret|key|pass|api|broker|backend)[\w-]*", re.IGNORECASE)
_CONFIGURATION: Final = ("--conf",)


def register(office: typer.Typer) -> None:
    """Add the commands."""
    for command in (worker, beat, flower):
        office.command(context_settings=_PASS_ON)(command)


def worker(context: typer.Context) -> None:
    """Run a Celery worker on the queues admission, recovery and execution; all else is passed on to Celery."""
    given = context.args
    # Soft shutdown bounds a stop of the prefork pool; the other pools know no such signal.
    prefork = _value(given, _POOL) in (None, "prefork", "processes")
    environment = {"REMAP_SIGTERM": os.environ.get("REMAP_SIGTERM", "SIGQUIT")} if prefork else {}
    _become(["worker", *worker_defaults(given), *given], environment)


def worker_defaults(given: Sequence[str]) -> list[str]:
    """Return the options of a worker that `given` leaves open."""
    from office_tasks.configuration import QUEUES

    queues = [] if _has(given, _QUEUES) else [f"--queues={','.join(QUEUES)}"]
    return [*queues, *_log_level(given)]


def beat(context: typer.Context) -> None:
    """Run Celery's beat, one per installation; all else is passed on to Celery."""
    _become(["beat", *_log_level(context.args), *context.args], {})


def flower(context: typer.Context) -> None:
    """Run Flower behind a login (FLOWER_BASIC_AUTH=user:password); all else is passed on to it."""
    from office_tasks.watching.login import NO_LOGIN, are_logins

    login = _value(context.args, _BASIC_AUTH) or os.environ.get("FLOWER_BASIC_AUTH", "")
    if not are_logins(login.split(",")):
        say(NO_LOGIN, err=True)
        raise typer.Exit(1)
    from office_tasks.watching import options

    options.check(context.args, os.environ)
    ours = [] if _has(context.args, _CONFIGURATION) else [f"--conf={Path(__file__).parents[1] / 'flowerconfig.py'}"]
    _become(["flower", *ours, *context.args], {})


def _become(words: Sequence[str], environment: Mapping[str, str]) -> None:
    from office_tasks.settings import load

    load()
    say(" ".join([*_assignments(environment), shlex.join(["celery", "--app=office_tasks", *_masked(words)])]), err=True)
    os.environ.update(environment)
    os.execv(sys.executable, [sys.executable, "-m", "celery", "--app=office_tasks", *words])  # noqa: S606 - no shell wanted


def _assignments(environment: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in environment.items()]


def _masked(words: Sequence[str]) -> list[str]:
    return [_mask(word, before) for before, word in zip(["", *words], words, strict=False)]


def _mask(word: str, before: str) -> str:
    name, joined, _ = word.partition("=")
    if joined and _SECRET.match(name):
        return f"{name}=***"
    return "***" if _SECRET.fullmatch(before) or "@" in word.partition("://")[2] else word


def _log_level(given: Sequence[str]) -> list[str]:
    return [] if _has(given, _LOG_LEVEL) else ["--loglevel=INFO"]


def _has(given: Sequence[str], names: Sequence[str]) -> bool:
    return _value(given, names) is not None


def _value(given: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the value of an option as Celery's parser would see it: `-Q x`, `-Qx`, `--queues x` or `--queues=x`."""
    for word, following in zip(given, [*given[1:], ""], strict=False):
        if word in names:
            return following
        for name in names:
            joined = f"{name}=" if name.startswith("--") else name
            if word.startswith(joined):
                return word.removeprefix(joined)
    return None
