"""Who follows the documents to the letter: a clean checkout, a shell, a terminal for each command that goes on."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import psycopg

from office_tasks.devstack.ports import pick
from tests.documents.matching import Ids
from tests.documents.pages import ROOT, Step
from tests.nodes.waiting import until

# A command that goes on until Ctrl-C, and what it says once it is of use.
GOES_ON = re.compile(
    r"(?:\w+=\S+ )*(?:office|celery(?: -A office_tasks| --app=office_tasks)) (servers|worker|beat|flower)\b"
)
READY = {
    "servers": r"^export OFFICE_DATABASE_URL=\S+ OFFICE_BROKER_URL=\S+",
    "worker": r" ready\.",
    "beat": r"Sending due task",
    "flower": r"Visit me at (\S+)",
}
# Celery ends a worker that Ctrl-C stopped, warmly or not, with 1; and a beat that it met within a tick.
ENDS = {"worker": (1,), "beat": (0, 1)}
PATIENCE = 240.0
WAITING = "SELECT 1 FROM runs WHERE status IN ('queued', 'claimed') LIMIT 1"
# Nobody's own variables but how packages are found: those are the machine's.
KEPT = ("PIP_", "UV_", "SSL_", "http", "HTTP", "no_proxy", "NO_PROXY")
# What cannot be done here to the letter, and what is done for it: the same command over less, or nothing.
INSTEAD = (
    (re.compile(r"make test"), "PYTEST_ADDOPTS='--collect-only -qq' make test"),  # this is that suite
    (re.compile(r"(pytest tests/nodes)"), r"\1 --collect-only -qq"),  # and a part of it
    (re.compile(r"make (lint|bench-smoke|bench)"), r"make --dry-run \1"),  # .ci/run does them, the last one small
    (re.compile(r"(python -m bench .*--five-million)"), r"\1 --help"),
    (re.compile(r"(python -m bench --json .*)"), r"\1 --smoke --only P1"),  # .ci/run does all of them small
    (re.compile(r"(python -m bench .*)"), r"\1 --smoke"),
    (re.compile(r"docker compose (?!config).*"), "true"),  # it takes an engine
    (re.compile(r"(office-venv/bin/pip install .*)"), r"\1 --dry-run --quiet"),  # as `make demo` did
)
# Two readers of one machine cannot have one port. Those of Postgres and Redis are what `office servers` printed.
PORTS = ("5555", "5556", "9464")
SERVERS = ("5432", "6379")


class Running(NamedTuple):
    """A command in a terminal of its own."""

    at: str
    kind: str
    process: subprocess.Popen[bytes]
    said: Path

    def stop(self) -> str:
        """Press Ctrl-C; return what is wrong about how it ended, "" when nothing is."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            code = self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            code = self.process.wait()
        if code in ENDS.get(self.kind, (0,)):
            return ""
        return f"{self.at}: {self.kind} ended with {code}:\n{self.said.read_text()[-2000:]}"


class Reader:
    """One person at one machine; `wrong` is what did not go as the documents say."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.checkout = home / "office-tasks"
        self.ids = Ids()
        self.running: list[Running] = []
        self.wrong: list[str] = []
        self.ran: list[str] = []
        self.ports = {port: str(pick()) for port in PORTS}
        self._state = home / "shell"
        self._settled = ("", 0)
        self._begin()

    def _begin(self) -> None:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        for name in filter(None, listed.stdout.decode().split("\0")):
            if (ROOT / name).is_file():
                (self.checkout / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.checkout / name)
        self._state.write_text(f"cd {self.checkout}\n")

    def settle(self) -> None:
        """Remember the shell and the terminals as they are: every page but the first begins with them."""
        self._settled = self._state.read_text(), len(self.running)

    def turn(self) -> None:
        """Turn the page: a new shell, and Ctrl-C in what the last page opened."""
        shell, terminals = self._settled
        self._state.write_text(shell)
        self.leave(terminals)

    def do(self, step: Step) -> None:
        """Do what a document says; note what differs."""
        try:
            {"typed": self._type, "python": self._python, "file": self._write}[step.kind](step)
        except (LookupError, TimeoutError, subprocess.TimeoutExpired) as error:
            self.wrong.append(f"{step.at}: {step.text}\n{error}")

    def leave(self, keep: int) -> None:
        """Press Ctrl-C in all terminals but the first `keep`, the newest first."""
        while len(self.running) > keep:
            if ended := self.running.pop().stop():
                self.wrong.append(ended)

    def _type(self, step: Step) -> None:
        command = self._at_our_ports(self.ids.put_into(step.text))
        self.ran.append(step.text)
        if goes_on := GOES_ON.match(command):
            elsewhere = f"FLOWER_PORT={self.ports['5555']} " if goes_on[1] == "flower" else ""
            self._open(step.at, goes_on[1], elsewhere + command)
            return
        if command.startswith("export OFFICE_DATABASE_URL=") and not self.ports.keys() >= set(SERVERS):
            command = self._printed()
        self._compare(step, self._shell(_instead(command)))
        if command.startswith("office "):
            self._pause()

    def _pause(self) -> None:
        # Whoever types takes longer than beat, which has executed within 5 s what a command queued.
        if self.ports.keys() >= set(SERVERS) and self._settled[0]:
            url = f"postgresql://postgres@127.0.0.1:{self.ports['5432']}/postgres"
            with psycopg.connect(url, autocommit=True) as connection, suppress(TimeoutError):
                until(lambda: not connection.execute(WAITING).fetchone(), 10, "nothing that waits")

    def _printed(self) -> str:
        # Whoever reads types what `office servers` printed.
        line = re.findall(READY["servers"], self.running[0].said.read_text(), re.MULTILINE)[0]
        self.ports |= dict(zip(SERVERS, re.findall(r":(\d+)/", line), strict=True))
        return line

    def _python(self, step: Step) -> None:
        done = self._shell("python -", step.text)
        seen = done.stdout.strip().splitlines()
        said = (step.told or "").splitlines()
        if done.returncode or len(seen) != len(said) or not all(map(_comment_says, said, seen)):
            self.wrong.append(_report(step, done))

    def _write(self, step: Step) -> None:
        assert step.told
        where = self.checkout / step.told
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(step.text)

    def _compare(self, step: Step, done: subprocess.CompletedProcess[str]) -> None:
        seen = done.stdout + (done.stderr if done.returncode else "")
        differs = self.ids.differ(step.told, seen) if step.told is not None else ""
        if differs or (done.returncode and step.told is None):
            self.wrong.append(_report(step, done, differs))

    def _shell(self, command: str, given: str = "") -> subprocess.CompletedProcess[str]:
        script = f". {self._state}\n{command}\ncode=$?\n{{ export -p; echo cd \"'$PWD'\"; }} >{self._state}\nexit $code"
        return subprocess.run(
            ["bash", "-c", script],
            env=self._environment(),
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )

    def _open(self, at: str, kind: str, command: str) -> None:
        said = self.home / f"terminal-{len(list(self.home.glob('terminal-*')))}"
        with said.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", f". {self._state}\n{command}"],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.running.append(Running(at, kind, process, said))
        ready = re.compile(READY[kind], re.MULTILINE)
        until(lambda: ready.search(said.read_text()) or process.poll() is not None, PATIENCE, f"{command}: ready")
        if process.poll() is not None:
            self.wrong.append(f"{at}: {command}\nended with {process.returncode}:\n{said.read_text()[-3000:]}")

    def _at_our_ports(self, command: str) -> str:
        for theirs, ours in self.ports.items():
            command = re.sub(rf"\b{theirs}\b", ours, command)
        return command

    def _environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith(KEPT)}
        path = os.pathsep.join(
            entry for entry in os.environ["PATH"].split(os.pathsep) if entry != str(Path(sys.executable).parent)
        )
        # The home is the reader's own; `docker compose` is the machine's.
        plugins = os.environ.get("DOCKER_CONFIG", str(Path.home() / ".docker"))
        return {
            **kept,
            "DOCKER_CONFIG": plugins,
            "PIP_NO_COMPILE": "1",  # Python compiles what is imported, and most is not
            "PATH": path,
            "HOME": str(self.home),
            "COLUMNS": "110",
            "LANG": "C.UTF-8",
        }


@cache
def _composes() -> bool:
    asked = ["docker", "compose", "version"]
    return bool(shutil.which("docker")) and not subprocess.run(asked, capture_output=True, check=False).returncode


def _instead(command: str) -> str:
    if command.startswith("docker compose config") and not _composes():
        return "true"  # tests/deploy is skipped then, and says why
    for asked, done in INSTEAD:
        if asked.fullmatch(_without_comment(command)):
            return asked.sub(done, _without_comment(command))
    return command


def _without_comment(command: str) -> str:
    return command.partition("  #")[0].rstrip()


def _comment_says(comment: str, printed: str) -> bool:
    return comment == printed or comment.startswith(f"{printed}: ")


def _report(step: Step, done: subprocess.CompletedProcess[str], differs: str = "") -> str:
    missing = f"not seen: {differs}\n" if differs else ""
    return f"{step.at}: {step.text}\n{missing}status {done.returncode}\n{done.stdout}{done.stderr[-3000:]}"
