"""The compose file has no secret of its own, and opens no door but Flower's on this machine (OPS-3)."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import yaml

from tests.nodes.engine import ROOT

TEXT = (ROOT / "docker-compose.yml").read_text()
SERVICES = yaml.safe_load(TEXT)["services"]
SHIPPED = [ROOT / "Dockerfile", ROOT / "Makefile", ROOT / "docker-compose.yml", *(ROOT / "ops").rglob("*.*"),
           *(path for part in ("office_tasks", "db", "recovery") for path in (ROOT / part).rglob("*.py"))]  # fmt: skip


def test_no_password_has_a_default():
    """C31, R05, OPS-3: whatever is secret must be given; there is nothing to forget to change."""
    used = set(re.findall(r"\$\{(\w*(?:PASSWORD|SECRET|USER)\w*)([^}]*)\}", TEXT))
    logins = {"FLOWER_USER", "FLOWER_PASSWORD"}
    assert {name for name, _ in used} == {"POSTGRES_PASSWORD", "POSTGRES_WORKER_PASSWORD", "REDIS_PASSWORD", *logins}
    assert {how[:2] for _, how in used} == {":?"}
    assert [path for path in SHIPPED if re.search(r"basic_auth\s*=\s*\[", path.read_text())] == []


def test_redis_asks_for_its_password():
    """R05: whoever can write to the broker can send anything: it is asked for a password, and so is every client."""
    assert "requirepass %s" in SERVICES["redis"]["command"][-1]
    for name in ("worker", "beat", "flower"):
        assert SERVICES[name]["environment"]["OFFICE_BROKER_URL"].startswith("redis://:${REDIS_PASSWORD:?")


def test_only_flower_can_be_reached_and_from_this_machine_alone():
    """C31, OPS-3: no other port is published."""
    assert {name for name, service in SERVICES.items() if service.get("ports")} == {"flower"}
    assert [port for port in SERVICES["flower"]["ports"] if not port.startswith("127.0.0.1:")] == []
    assert "FLOWER_UNAUTHENTICATED_API" not in TEXT


def test_written_secrets_are_new_each_time(tmp_path):
    """C31: `make env` makes them up."""
    for name in ("one", "two"):
        subprocess.run([sys.executable, ROOT / ".ci/write_env.py", tmp_path / name], check=True, capture_output=True)
    one, two = (dict(line.split("=") for line in (tmp_path / name).read_text().splitlines()) for name in ("one", "two"))
    assert {name for name in one if one[name] == two[name]} == {"FLOWER_USER"}
    assert (tmp_path / "one").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("path", [".env", ".env.example"])
def test_no_secrets_are_checked_in(path):
    """C31: nor an example that somebody would keep."""
    assert not (ROOT / path).exists() or path in (ROOT / ".gitignore").read_text().split()
