"""Readiness of process nodes: the process lives and the present run has logged the prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_docker_tools.exceptions import ContainerFailed

from tests.nodes.waiting import until

if TYPE_CHECKING:
    from tests.nodes.handle import ProcHandle


class ProcReady:
    """Mixin to stand before a `CeleryTestContainer`, whose own waiting polls once a second and sees old runs' logs."""

    _container: ProcHandle
    ready_prompt: str | None
    name: str

    def ready(self) -> bool:
        """Wait for the prompt; False when paused, `ContainerFailed` with the log's end when the process is gone."""
        return self._container.status != "paused" and self._wait_ready()

    def _wait_ready(self, timeout: int = 30) -> bool:
        until(self._settled, timeout, f"{self.name} ready")
        if self._container.status == "exited":
            tail = self._container.logs_since_start()[-4000:]
            raise ContainerFailed(self, f"{self.name} exited with {self._container.exit_code}:\n{tail}")
        return True

    def _settled(self) -> bool:
        prompt = self.ready_prompt or ""
        return prompt in self._container.logs_since_start() or self._container.status == "exited"
