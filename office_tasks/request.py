"""The worker's view of a message: what it tells others of the arguments is what may be shown of them."""

from __future__ import annotations

from typing import Any

from celery.worker.request import Request

from office_tasks.logs import named


class OfficeRequest(Request):  # type: ignore[misc]  # Celery has no types
    """A Celery request that `celery inspect` and Flower's worker page may read (OPS-1.1)."""

    def info(self, safe: bool = True) -> dict[str, Any]:  # noqa: ARG002 - Celery's own signature
        """Describe the request; Celery would hand out the arguments themselves to whoever inspects the worker."""
        return super().info(safe=True)  # type: ignore[no-any-return]

    def revoked(self) -> bool:
        """Drop the request if it is revoked or past its time; what is logged of that names it, as below (OPS-1.3)."""
        with named(self.id, self.name):
            return super().revoked()  # type: ignore[no-any-return]

    def on_timeout(self, soft: bool, timeout: float) -> None:
        """Note that the request took too long."""
        with named(self.id, self.name):
            super().on_timeout(soft, timeout)

    def on_failure(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Celery's own signature
        """Note that the request failed, or that its process was lost."""
        with named(self.id, self.name):
            return super().on_failure(*args, **kwargs)
