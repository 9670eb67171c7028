"""Fixtures of the deployment tests: compose's view of its file, and a path on which its commands are found."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from office_tasks.devstack.binaries import find_postgres, find_redis
from tests.integration.conftest import arm, caller
from tests.nodes.engine import ROOT
from tests.nodes.worker import inherited

__all__ = ["arm", "caller"]
OFFICE = [sys.executable, "-c", "import sys; sys.argv[0] = 'office'; from office_tasks.cli import main; main()"]
PROJECT = ("docker-compose.yml", "Makefile", ".ci/write_env.py", "ops/worker-role.sql", "Dockerfile")


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Project:
    """A checkout's files of deployment, in a directory of its own."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name in PROJECT:
            (place / name).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, place / name)

    @property
    def env(self) -> Path:
        return self.place / ".env"

    def make_env(self) -> str:
        """Run `make env` and return what it says."""
        return self.run("make", "env", f"PYTHON={sys.executable}").out

    def config(self, *words: str) -> Done:
        """Run `docker compose config`."""
        return self.run("docker", "compose", "config", *words)

    def resolved(self) -> dict:
        """Return the configuration as an engine would be given it."""
        done = self.config("--format", "json")
        assert done.code == 0, done.err
        return json.loads(done.out)

    def run(self, *words: str) -> Done:
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "DOCKER_CONFIG") if name in os.environ}
        done = subprocess.run(words, cwd=self.place, env=kept, capture_output=True, text=True, timeout=60, check=False)
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


@pytest.fixture
def composed(project):
    """A project whose compose file compose itself reads."""
    if shutil.which("docker") is None or project.run("docker", "compose", "version").code:
        pytest.skip("no `docker compose` here: `.ci/compose` brings it, without an engine")
    return project


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """A PATH on which the commands of the compose file and of the documents are found, `office` among them."""
    place = tmp_path_factory.mktemp("programs")
    office = place / "office"
    office.write_text(f'#!/bin/sh\nexec {shlex.join(OFFICE)} "$@"\n')
    office.chmod(0o755)
    found = [place, Path(sys.executable).parent, find_redis().parent, find_postgres().bin]
    return os.pathsep.join([*map(str, found), os.environ["PATH"]])


@pytest.fixture
def deployed_env(programs, office_env):
    """The environment of a service: the test's servers, and the programs' path."""
    return {**inherited(), **office_env, "PATH": programs}
