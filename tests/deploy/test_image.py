"""The Dockerfile without an engine: its instructions carried out, and compose's commands run in what comes of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from office_tasks.devstack.ports import pick
from tests.deploy.dockerfile import DOCKERFILE, STAGES
from tests.deploy.rehearsal import Rehearsal, StepError, context
from tests.deploy.services import service
from tests.nodes.engine import ROOT
from tests.nodes.waiting import until

# What pip and uv say when there is no way to a package index: no fault of the Dockerfile.
NO_INDEX = re.compile(r"Temporary failure in name resolution|NewConnectionError|Network is unreachable|dns error")
SERVICES = ("worker", "executor", "beat", "flower")


def test_what_an_engine_is_sent():
    """OPS-3: the context holds what is installed, and no secret, no tests, nothing that was built here."""
    sent = {Path(name) for name in context()}
    packages = {path for path in sent if path.parts[0] in ("office_tasks", "db", "recovery")}
    assert {str(path) for path in sent - packages} - {"Dockerfile", ".dockerignore"} == {
        "LICENSE", "README.md", "pyproject.toml", "requirements/runtime.lock"
    }  # fmt: skip
    assert len(packages) > 100
    assert {path.suffix for path in packages} <= {".py", ".typed", ".mako", ".html"}


def test_the_image_is_slim_and_nobodys():
    """OPS-3: slim at each stage, none of the tools that built it, a user of its own that cannot log in."""
    assert all(re.fullmatch(r"python:3\.\d+-slim", stage.base) for stage in STAGES)
    assert len({stage.base for stage in STAGES}) == 1
    assert DOCKERFILE.user not in ("root", "0")
    [made] = [rest for instruction, rest in DOCKERFILE.steps if instruction == "RUN"]
    assert made.startswith("useradd --system ")
    assert made.endswith(f"--shell /usr/sbin/nologin {DOCKERFILE.user}")
    order = [instruction for instruction, _ in DOCKERFILE.steps]
    assert order.index("USER") < order.index("CMD")


def test_the_user_can_be_made(tmp_path):
    """OPS-3: the Dockerfile's own useradd, on a system in a directory."""
    if os.geteuid() or shutil.which("useradd") is None:
        pytest.skip("only root can try useradd, where there is one")
    (tmp_path / "etc").mkdir()
    for name in ("passwd", "group", "shadow", "gshadow"):
        (tmp_path / "etc" / name).touch()
    [made] = [rest for instruction, rest in DOCKERFILE.steps if instruction == "RUN"]
    program, *words = made.split()
    (tmp_path / "home").mkdir()
    subprocess.run([program, "--prefix", str(tmp_path), *words], check=True, timeout=30, capture_output=True)
    [line] = (tmp_path / "etc" / "passwd").read_text().splitlines()
    name, _, uid, _, _, home, shell = line.split(":")
    assert (name, home, shell) == ("office", "/home/office", "/usr/sbin/nologin")
    assert int(uid) > 0


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_pin_has_a_wheel_for_the_image(machine, tmp_path):
    """OPS-3: the image's Python is newer than the one that may run here, and slim has no compiler."""
    version = re.fullmatch(r"python:(3\.\d+)-slim", DOCKERFILE.base)[1]
    platform = [f"--python-version={version}", f"--python-platform={machine}-manylinux_2_28"]
    uv = [sys.executable, "-m", "uv", "pip", "install", "--dry-run", "--only-binary=:all:", "--require-hashes"]
    lock = ["--no-deps", f"--target={tmp_path}", "-r", str(ROOT / "requirements" / "runtime.lock")]
    done = subprocess.run([*uv, *platform, *lock], capture_output=True, text=True, timeout=100, check=False)
    if NO_INDEX.search(done.stderr):
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def image():
    """What the Dockerfile makes, in a directory; it takes a minute, and only one test asks for it."""
    made = Rehearsal()
    try:
        made.build()
        yield made
    except StepError as error:
        if NO_INDEX.search(str(error)):
            pytest.skip("no package index can be reached")
        raise
    finally:
        made.remove()


@pytest.fixture
def start(image, node_engine, office_env):
    """Return a function that starts a service in the image, as its user."""
    started = []

    def run(name, **env):
        about = service(name)
        env = {**image.environment(), **office_env, **about.environment, **env}
        started.append(node_engine.run(image.words(about.command), name=name, env=env))
        return started[-1]

    yield run
    for handle in started:
        node_engine.remove(handle)


@pytest.mark.timeout(900)
def test_compose_runs_in_the_image(image, start, office_env):
    """OPS-3: not root, home and installation read-only, /tmp to write to: every service runs, is well, and stops."""
    assert image.run(DOCKERFILE.command).returncode == 0
    migrated = image.run(service("migrate").command, **office_env)
    assert (migrated.returncode, migrated.stderr) == (0, "")
    port, metrics = str(pick()), str(pick())
    flower = {"FLOWER_USER": "a", "FLOWER_BASIC_AUTH": "a:long-password", "FLOWER_PORT": port}
    handles = {
        name: start(name, **flower, **{"OFFICE_METRICS_PORT": metrics} if name == "worker" else {}) for name in SERVICES
    }
    for name in SERVICES:
        check = [word.replace("5555", port) for word in service(name).check]
        until(lambda check=check: image.run(check, **office_env).returncode == 0, 120, f"{name} is well")
    assert "metrics_served" in handles["worker"].logs().decode()
    if image.as_root:
        assert written_by_the_user(image.root) <= {"tmp"}
    for name in SERVICES:
        handles[name].stop(timeout=service(name).grace)
        assert handles[name].exit_code in (0, 128 + 15), f"{name} stops by itself"


def written_by_the_user(root):
    """Return the first directories of what does not belong to root."""
    return {path.relative_to(root).parts[0] for path in root.rglob("*") if path.lstat().st_uid}
