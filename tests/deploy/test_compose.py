"""docker-compose.yml as compose itself resolves it: no engine is needed for that."""

from __future__ import annotations

import re
import stat

import pytest
from sqlalchemy import make_url

from office_tasks.settings import Settings
from tests.deploy.dockerfile import DOCKERFILE
from tests.deploy.services import COMPOSE, LONG_RUNNING
from tests.nodes.engine import ROOT

NAMES = ("POSTGRES_PASSWORD", "POSTGRES_WORKER_PASSWORD", "REDIS_PASSWORD", "FLOWER_PASSWORD", "FLOWER_USER")
SERVICES = {"postgres", "redis", "migrate", "worker", "executor", "beat", "flower"}
READY = {"postgres": "service_healthy", "redis": "service_healthy", "migrate": "service_completed_successfully"}


@pytest.fixture
def services(composed):
    composed.make_env()
    return composed.resolved()["services"]


def test_it_passes_with_what_make_env_wrote(composed):
    """OPS-3: `docker compose config` passes, and says nothing else."""
    assert composed.make_env() == "wrote .env; Flower's login is in it\n"
    done = composed.config("--quiet")
    assert done == (0, "", "")


def test_it_starts_nothing_without_secrets(composed):
    """OPS-3: without a `.env` it refuses, in a sentence that says what to do."""
    done = composed.config()
    assert done.code != 0
    assert "run `make env` first" in done.err


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("left", ["", "{name}=\n"], ids=["missing", "empty"])
def test_each_secret_is_needed(composed, name, left):
    """OPS-3: no secret has a default, not even an empty one."""
    composed.make_env()
    lines = composed.env.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(f"{name}=")]
    assert len(kept) == len(lines) - 1
    composed.env.write_text("".join(kept) + left.format(name=name))
    done = composed.config()
    assert done.code != 0
    assert "run `make env` first" in done.err


def test_nothing_secret_is_in_the_repository():
    """OPS-3, C31: whatever is interpolated and secret is required; the file itself holds none."""
    named = re.findall(r"(?<!\$)\$\{(\w+)(:?[-?])?", COMPOSE)
    assert {name for name, _ in named if "OFFICE_" not in name} == set(NAMES)
    assert {how for name, how in named if name in NAMES} == {":?"}
    assert not re.search(r"(?i)(password|secret|auth)\w*:\s*['\"]?[\w-]+['\"]?\s*$", COMPOSE, re.MULTILINE)


def test_the_secrets_are_one_owners(project):
    """OPS-3: readable by nobody else, random, and never written twice."""
    project.make_env()
    assert stat.S_IMODE(project.env.stat().st_mode) == 0o600
    before = project.env.read_text()
    values = dict(line.split("=") for line in before.splitlines())
    assert set(values) == set(NAMES)
    secret = [value for name, value in values.items() if name != "FLOWER_USER"]
    assert len(set(secret)) == 4
    assert all(re.fullmatch("[0-9a-f]{48}", value) for value in secret)
    assert "exists and is kept" in project.make_env()
    assert project.env.read_text() == before


def test_an_older_env_is_completed(project):
    """OPS-3: an upgrade adds the names that are missing, and says which; servers know the passwords that are there."""
    project.env.write_text("POSTGRES_PASSWORD=old\nREDIS_PASSWORD=old\nexport FLOWER_USER=me\nFLOWER_PASSWORD=old")
    said = project.make_env()
    lines = project.env.read_text().splitlines()
    assert lines[:4] == ["POSTGRES_PASSWORD=old", "REDIS_PASSWORD=old", "export FLOWER_USER=me", "FLOWER_PASSWORD=old"]
    assert [line.partition("=")[0] for line in lines[4:]] == ["POSTGRES_WORKER_PASSWORD"]
    assert "added to it: POSTGRES_WORKER_PASSWORD" in said


def test_a_name_without_a_value_is_completed(project):
    """OPS-3: compose refuses a blank secret and says `make env`: that has to help."""
    project.env.write_text("REDIS_PASSWORD=\nFLOWER_USER =  \n")
    said = project.make_env()
    assert "REDIS_PASSWORD" in said
    assert "FLOWER_USER" in said
    values = dict(line.split("=", 1) for line in project.env.read_text().splitlines())
    assert re.fullmatch("[0-9a-f]{48}", values["REDIS_PASSWORD"])
    assert values["FLOWER_USER"] == "office"


def test_the_services(services):
    """OPS-3: what there is, what waits for what, and that all but the one shot come back and say how they are."""
    assert set(services) == SERVICES
    for name in LONG_RUNNING:
        assert services[name]["restart"] == "unless-stopped"
        check = services[name]["healthcheck"]
        assert check["test"][0] in ("CMD", "CMD-SHELL")
        assert {"interval", "timeout", "retries"} <= set(check)
        assert not check.get("disable")
    assert services["migrate"]["restart"] == "no"
    assert "healthcheck" not in services["migrate"]
    for name in ("worker", "executor", "beat", "flower"):
        waits = {other: how["condition"] for other, how in services[name]["depends_on"].items()}
        assert waits == READY
    assert set(services["migrate"]["depends_on"]) == {"postgres"}


def test_only_flower_is_published(services):
    """OPS-3, C31: and on this machine only."""
    published = {name: service["ports"] for name, service in services.items() if service.get("ports")}
    assert set(published) == {"flower"}
    assert [(port["host_ip"], port["target"]) for port in published["flower"]] == [("127.0.0.1", 5555)]
    assert not any("network_mode" in service for service in services.values())


def test_nothing_has_more_rights_than_it_needs(services):
    """OPS-3, OPS-4: nobody is root, no file system but the data's is written to, no capability is kept."""
    for name, service in services.items():
        user = service.get("user", DOCKERFILE.user if "build" in service else "root")
        assert user not in ("root", "0", ""), name
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert not any(service.get(key) for key in ("privileged", "cap_add", "pid", "ipc", "devices"))
        # Of a tmpfs without a mode the image decides who may write to it, and root owns it.
        assert all(place.endswith(":mode=1777") for place in service["tmpfs"])
        assert any(place.startswith("/tmp:") for place in service["tmpfs"])


def test_only_migrations_run_as_the_owner(services):
    """OPS-4: the role of workers, beat and Flower is not that of migrations, and has a password of its own."""
    urls = {
        name: make_url(service["environment"]["OFFICE_DATABASE_URL"])
        for name, service in services.items()
        if "build" in service
    }
    owner = services["postgres"]["environment"]
    assert (urls["migrate"].username, urls["migrate"].password) == (owner["POSTGRES_USER"], owner["POSTGRES_PASSWORD"])
    others = {(url.username, url.password) for name, url in urls.items() if name != "migrate"}
    assert others == {("office_worker", owner["POSTGRES_WORKER_PASSWORD"])}
    assert {url.database for url in urls.values()} == {owner["POSTGRES_DB"]}
    [script] = [mount for mount in services["postgres"]["volumes"] if mount["type"] == "bind"]
    assert script["target"].startswith("/docker-entrypoint-initdb.d/")
    assert script["read_only"] is True


def test_the_settings_are_settings(services, monkeypatch):
    """OPS-3: what the services are given is accepted; the redis of all URLs asks for the password in them."""
    for service in services.values():
        given = {name: value for name, value in service["environment"].items() if name.startswith("OFFICE_")}
        with monkeypatch.context() as patch:
            for name, value in given.items():
                patch.setenv(name, value)
            settings = Settings()
        if "OFFICE_BROKER_URL" in given:
            password = services["redis"]["environment"]["REDIS_PASSWORD"]
            assert settings.broker_url.get_secret_value() == f"redis://:{password}@redis:6379/0"


def test_the_override_of_the_documents(composed):
    """OPS-3: an executor of one's own, as docs/deploying.md writes it, keeps what it does not name."""
    [override] = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "deploying.md").read_text(), re.DOTALL)
    composed.make_env()
    before = composed.resolved()["services"]
    (composed.place / "docker-compose.override.yml").write_text(override)
    after = composed.resolved()["services"]
    assert after["worker"] == before["worker"]
    given = after["executor"].pop("environment")
    assert given.items() > before["executor"].pop("environment").items()
    assert given["OFFICE_RUN_HANDLER"] == "house.agents:work"
    assert {name for name, value in after["executor"].items() if before["executor"][name] != value} == {
        "build",
        "image",
    }
