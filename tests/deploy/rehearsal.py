"""The Dockerfile's instructions carried out without an engine: its absolute paths lie in a directory of the test's.

Under root everything runs as a user who is none, in what belongs to root, as it will in the container.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from docker.utils import exclude_paths

from office_tasks.devstack.privilege import give, reachable
from tests.deploy.dockerfile import STAGES
from tests.nodes.engine import ROOT

NOBODY = 65534
OURS = re.compile(r"(?<![\w./])/(?=(?:src|opt|home|tmp)(?:/|\b))")
ROOT_ONLY = ("useradd",)


class StepError(Exception):
    """An instruction failed."""


class Rehearsal:
    """A container's file system in a directory, as far as the Dockerfile makes it.

    Attributes:
        root: stands for the container's `/`.
        env: what the instructions of the present stage set.
    """

    def __init__(self) -> None:
        self.place = Path(tempfile.mkdtemp(prefix="office-image-", dir="/tmp"))
        self.place.chmod(0o755)
        self.root = self.place / "root"
        self.as_root = os.geteuid() == 0
        self.python = self._python()
        self._open_to_user = False
        self.env: dict[str, str] = {}
        self.cwd = self.root

    def build(self) -> None:
        """Carry out all stages; of an earlier one only what a later one copies is left."""
        for stage in STAGES:
            before = self.root.rename(self.place / "before") if self.root.exists() else None
            self._open_to_user = self.as_root and stage is not STAGES[-1]
            self._begin()
            for instruction, rest in stage.steps:
                getattr(self, f"_{instruction.lower()}")(rest, before)
            if before:
                shutil.rmtree(before)

    def run(self, words: list[str], **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the container as it stands."""
        return subprocess.run(
            self.words(words), env={**self.environment(), **env}, capture_output=True, text=True,
            timeout=500, check=False,
        )  # fmt: skip

    def words(self, words: list[str]) -> list[str]:
        """Return a command as one that may be started here."""
        lowered = [f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
        become = ["setpriv", *lowered] if self.as_root else []
        return ["env", f"--chdir={self.cwd}", *become, *(self.here(word) for word in words)]

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_"))}
        tmp = self.root / "tmp"
        path = f"{self.python}:/usr/local/bin:/usr/bin:/bin"
        made = {name: self.here(value).replace("$PATH", path) for name, value in self.env.items()}
        return {**kept, "PATH": path, "HOME": str(self.root / "home/office"), "TMPDIR": str(tmp), **made}

    def here(self, text: str) -> str:
        """Return a text with the container's paths where they are here."""
        return OURS.sub(f"{self.root}/", text)

    def remove(self) -> None:
        shutil.rmtree(self.place)

    def _python(self) -> Path:
        """Return a directory with a `python` that the user may run: this one's, or a copy where he may not go."""
        program = Path(sys.base_prefix, "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
        if self.as_root and not reachable(program.resolve()):
            copy = self.place / "python"
            left_out = shutil.ignore_patterns("site-packages", "test", "__pycache__", "share", "*.a")
            shutil.copytree(sys.base_prefix, copy, symlinks=True, ignore=left_out)
            program = copy / "bin" / program.name
        place = self.place / "bin"
        place.mkdir()
        (place / "python").symlink_to(program)
        return place

    def _begin(self) -> None:
        self.cwd, self.env = self.root, {}
        for name in ("opt", "home", "tmp"):
            (self.root / name).mkdir(parents=True)
        (self.root / "tmp").chmod(0o1777)
        self._open(self.root / "opt")

    def _open(self, path: Path) -> None:
        """Let the user write there while he builds; what the last stage takes over belongs to root."""
        if self._open_to_user:
            give(path, "nobody")

    def _run(self, rest: str, _before: Path | None) -> None:
        if rest.split(maxsplit=1)[0] in ROOT_ONLY:
            (self.root / "home" / "office").mkdir()
            return
        done = self.run(["sh", "-c", rest])
        if done.returncode:
            raise StepError(f"RUN {rest}\n{done.stdout[-2_000:]}{done.stderr[-4_000:]}")

    def _copy(self, rest: str, before: Path | None) -> None:
        *sources, target = rest.split()
        into = self.cwd / self.here(target)
        if sources[0].startswith("--from="):
            shutil.copytree(before / sources[1].lstrip("/"), into, symlinks=True)
            return
        for name in context():
            for source in sources:
                if name == source or name.startswith(f"{source}/"):
                    there = into / name if target == "./" else into / name.removeprefix(source).lstrip("/")
                    there.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(ROOT / name, there)
        self._open(self.cwd)

    def _env(self, rest: str, _before: Path | None) -> None:
        self.env |= dict(assignment.split("=", 1) for assignment in rest.split())

    def _workdir(self, rest: str, _before: Path | None) -> None:
        self.cwd = Path(self.here(rest))
        self.cwd.mkdir(parents=True, exist_ok=True)
        self._open(self.cwd)

    def _user(self, rest: str, _before: Path | None) -> None: ...

    _entrypoint = _cmd = _user


def context() -> list[str]:
    """Return the files that an engine would be sent, as .dockerignore says."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    sent = exclude_paths(str(ROOT), patterns, "Dockerfile")
    return sorted(name for name in sent if (ROOT / name).is_file())
