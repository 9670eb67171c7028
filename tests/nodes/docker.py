"""Fixtures of docker mode: pytest-celery's own containers, the worker from the project's image."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import docker
import pytest
from docker.errors import DockerException
from pytest_celery import CeleryWorkerContainer
from pytest_docker_tools import build
from requests import RequestException

from tests.nodes.engine import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


def engine_url() -> str:
    """Return where the engine should listen: DOCKER_HOST, or this platform's default."""
    return str(docker.utils.parse_host(os.environ.get("DOCKER_HOST"), is_win32=os.name == "nt"))


def answers() -> bool:
    """Tell whether a Docker engine can be reached."""
    if not socket_listens(engine_url()):
        return False
    try:
        client = docker.from_env(timeout=2)
    except DockerException:
        return False
    try:
        return bool(client.ping())
    except (DockerException, RequestException):
        return False
    finally:
        client.close()


def socket_listens(url: str) -> bool:
    """Tell whether a unix socket takes connections (other kinds of address: true). The client leaks a failed one."""
    kind, _, path = url.partition("://")
    if not kind.endswith("unix"):
        return True
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0


@pytest.fixture(scope="session")
def docker_client() -> Iterator[docker.DockerClient]:
    """The client, closed at the end; a clear refusal where no engine answers."""
    if not answers():
        pytest.fail(f"PYTEST_CELERY_NODES=docker, but no Docker engine answers at {engine_url()}", pytrace=False)
    client = docker.from_env()
    yield client
    client.close()


office_image = build(path=str(ROOT), tag="office-tasks/test-base")

celery_base_worker_image = build(
    path=str(Path(__file__).parent), buildargs={"BASE": "{office_image.id}"}, tag="office-tasks/test-worker"
)


@pytest.fixture
def run_worker_container(
    docker_client: docker.DockerClient,
    celery_base_worker_image: docker.models.images.Image,
    default_pytest_celery_network: docker.models.networks.Network,
    default_worker_volume: docker.models.volumes.Volume,
) -> Iterator[Callable[..., CeleryWorkerContainer]]:
    """Start a worker from its command and environment; it may not be ready yet. Removes them all."""
    started = []

    def run(command: Sequence[str], env: Mapping[str, str]) -> CeleryWorkerContainer:
        container = docker_client.containers.run(
            celery_base_worker_image.id,
            list(command),
            environment=dict(env),
            network=default_pytest_celery_network.name,
            volumes={default_worker_volume.name: {"bind": "/app", "mode": "rw"}},
            detach=True,
        )
        started.append(container)
        return CeleryWorkerContainer(container)

    yield run
    for container in started:
        container.remove(force=True)
