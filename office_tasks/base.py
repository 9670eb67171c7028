"""The one base class of the office's Celery tasks: context, retries, and the bound on deadly messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from celery import Task
from celery.exceptions import Reject
from kombu.exceptions import EncodeError
from sqlalchemy.exc import SQLAlchemyError

from db import deliveries
from db.engine import autocommit
from db.errors import brief
from office_tasks import retries
from office_tasks.arguments import check_call
from office_tasks.errors import DatabaseError, Forbidden, InvalidInput, NotFound, Refused
from office_tasks.ids import new_id
from office_tasks.logs import named
from office_tasks.messages import check_id
from office_tasks.results import returned

if TYPE_CHECKING:
    from office_tasks.office import Office

# At its sixth delivery a message is given up (ADM-10.5).
LAST_DELIVERY: Final = 6


class OfficeTask(Task):  # type: ignore[misc]  # Celery has no types
    """A Celery task of the office. Called as a plain function it runs the same code, in process."""

    abstract = True
    max_retries = None
    # Whether a failure that passes brings the message back (ADM-7.4).
    comes_back = True
    # Answers, not failures of ours: Celery logs them without a trace.
    throws = (InvalidInput, NotFound, Forbidden, Refused)
    Request = "office_tasks.request:OfficeRequest"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - Celery's own signature
        """Run the task; what passes is retried, what a database says is said without its statement."""
        with named(self.request.id, self.name):
            try:
                check_call(self.name, self.run, args, kwargs)
                return self._returned(self.run(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - every kind is raised again, as itself or as its retry
                self._retry_what_passes(error)
                raise self._told(error) from None

    def apply_async(self, args: Any = None, kwargs: Any = None, *more: Any, **options: Any) -> Any:  # noqa: ANN401 - Celery's own signature
        """Send the message; arguments that do not fit, or are no JSON, are refused here as a worker would.

        Raises:
            InvalidInput: the arguments are not those of the task, or cannot be encoded, or the task id is no identifier
                of at most 240 bytes.
        """
        if options.get("task_id") is not None:
            check_id(options["task_id"])
        if self.typing:
            check_call(self.name, self.run, args or (), kwargs or {})
        try:
            return super().apply_async(args, kwargs, *more, **options)
        except (EncodeError, RecursionError, ValueError) as error:
            raise InvalidInput(f"the arguments cannot be sent as JSON: {type(error).__name__}") from None

    @property
    def office(self) -> Office:
        """The settings and the engine of this process."""
        return self.app.office  # type: ignore[no-any-return]

    @property
    def message_id(self) -> str:
        """The Celery task id, equal on every delivery of one message; a new id for a plain call (ADM-8.3)."""
        return self.request.id or str(new_id())

    @property
    def last_attempt(self) -> bool:
        """Whether a pause gate that cannot be read would be retried no more."""
        return bool(self.request.called_directly) or not retries.left(retries.PAUSE_GATE, self._counts)

    def is_poisoned(self) -> bool:
        """Count a redelivery, and tell whether there have been too many. The first delivery costs nothing."""
        if not (self.request.delivery_info or {}).get("redelivered"):
            return False
        with autocommit(self.office.engine) as connection:
            delivered = deliveries.count(connection, self.request.id, self.name)
            if delivered < LAST_DELIVERY:
                return False
            deliveries.poison(connection, self.request.id)
        return True

    def _returned(self, found: object) -> object:
        # Whoever watches a worker sees what it returns as well, though not all of it (OPS-1.3).
        return found if self.request.called_directly or self.request.is_eager else returned(found)

    @property
    def _counts(self) -> Mapping[str, int]:
        return (self.request.headers or {}).get(retries.HEADER) or {}

    def _retry_what_passes(self, error: Exception) -> None:
        kind = retries.kind_of(error)
        if kind is None or not self.comes_back or self.request.called_directly or not retries.left(kind, self._counts):
            return
        counts = {**self._counts, kind.name: self._counts.get(kind.name, 0) + 1}
        gap = retries.gap(self.request.retries, self.office.settings.visibility_timeout)
        headers = {**(self.request.headers or {}), retries.HEADER: counts}
        try:
            raise self.retry(exc=self._told(error), countdown=gap, headers=headers)
        except Reject as unsent:
            # The broker is gone too, and Celery would drop the message: it must come back instead.
            raise Reject(unsent.reason, requeue=True) from None

    @staticmethod
    def _told(error: Exception) -> Exception:
        # A driver's error carries its statement and does not survive the result backend; its sentence does.
        return DatabaseError(brief(error)) if isinstance(error, SQLAlchemyError) else error


_LIMITS: Final = (("time_limit", "office_run_hard_limit"), ("soft_time_limit", "office_run_soft_limit"))


class ExecutionTask(OfficeTask):
    """Executes a run (REC-2.9).

    Its truth is the run's row and the lease on it, not the message: that is acknowledged early and never comes back.
    """

    abstract = True
    acks_late = False
    reject_on_worker_lost = False
    ignore_result = True
    comes_back = False
    from_config = (*(pair for pair in Task.from_config if pair[0] not in dict(_LIMITS)), *_LIMITS)
