"""The worker's view of a message: what it tells others of the arguments is what may be shown of them."""

from __future__ import annotations

from typing import Any

from celery.worker.request import Request


class OfficeRequest(Request):  # type: ignore[misc]  # Celery has no types
    """A Celery request that `celery inspect` and Flower's worker page may read (OPS-1.1)."""

    def info(self, safe: bool = True) -> dict[str, Any]:  # noqa: ARG002 - Celery's own signature
        """Describe the request; Celery would hand out the arguments themselves to whoever inspects the worker."""
        return super().info(safe=True)  # type: ignore[no-any-return]
