"""The Celery application. Importing it reads no setting and opens nothing."""

from __future__ import annotations

import os
import re
import sys
from functools import cached_property
from typing import Any

import click
from celery import Celery, signals
from celery.app import utils
from celery.backends.asynchronous import E_RETRY_LIMIT_EXCEEDED
from celery.bin.base import CLIContext
from kombu.exceptions import OperationalError

from office_tasks.admission.listeners import when_queued
from office_tasks.arguments import reported
from office_tasks.base import OfficeTask
from office_tasks.configuration import PATIENCE_SECONDS, configuration
from office_tasks.consumer import read_json_plainly
from office_tasks.envelopes import drop_what_is_none
from office_tasks.execution.signals import Signals
from office_tasks.exporter import Exporter
from office_tasks.logs import configure_logs
from office_tasks.office import Office
from office_tasks.settings import Settings, SettingsError, load


def _settings() -> Settings:
    """Read the settings; Celery's own commands end with the sentence of one that cannot work (OPS-2).

    Celery asks for them while it still reads its arguments, where an error would be a trace.
    """
    try:
        return load()
    except SettingsError as error:
        command = click.get_current_context(silent=True)
        if command and isinstance(command.obj, CLIContext):
            sys.exit(f"office: {error}")
        raise


class OfficeApp(Celery):  # type: ignore[misc]  # Celery has no types
    """Celery with an office: settings are read when the first of them is needed."""

    @cached_property
    def office(self) -> Office:
        """The composition root of this process."""
        return Office(_settings())

    @cached_property
    def executions(self) -> Signals:
        """The signals that this process sends."""
        return Signals(self)

    @cached_property
    def exporter(self) -> Exporter:
        """What a worker tells Prometheus; no other process asks for it."""
        return Exporter(self.office.settings)

    def task(self, *args: Any, **options: Any) -> Any:  # noqa: ANN401 - Celery's own signature
        """Make a Celery task of this app alone; by default every other app of the process would be given it too."""
        return super().task(*args, **{"shared": False, **options})

    def send_task(self, name: str, args: Any = None, kwargs: Any = None, *more: Any, **options: Any) -> Any:  # noqa: ANN401 - as above
        """Send a message whose headers and events show of its arguments what may be shown (OPS-1.1).

        Raises:
            OperationalError: the broker does not answer, or the result backend, where an answer is waited for.
        """
        options["argsrepr"], options["kwargsrepr"] = reported(name, args, kwargs)
        try:
            return super().send_task(name, args, kwargs, *more, **options)
        except RuntimeError as error:
            if str(error) != E_RETRY_LIMIT_EXCEEDED:
                raise
            # Celery would have its caller restarted, which another call mends as well.
            raise OperationalError("the result backend does not answer") from error


app = OfficeApp(
    "office_tasks",
    task_cls=OfficeTask,
    include=["office_tasks.tasks", "recovery.tasks", "recovery.schedule"],
    set_as_current=False,
)
# Whoever inspects a worker sees its configuration: Celery hides the passwords in its own URLs, not in RedBeat's.
utils.HIDDEN_SETTINGS = re.compile(f"{utils.HIDDEN_SETTINGS.pattern}|REDBEAT_REDIS_URL", re.IGNORECASE)
app.add_defaults(lambda: configuration(app.office.settings))


def _look_at_flower(command: click.Context, _option: object, _value: object) -> None:
    """Before Flower reads its options: it would end with a trace, and serve pages without what is set here."""
    if command.info_name == "flower":
        from flower.urls import handlers  # noqa: PLC0415 - no other command needs Flower

        from office_tasks.watching import doors, options  # noqa: PLC0415 - as above

        options.check(command.params.get("tornado_argv") or (), os.environ)
        doors.refuse_frames()
        doors.lock(handlers)
        # Flower looks results up in whatever app is the default; ours leaves that place to its callers' own.
        app.set_default()


# Celery gives such an option to each of its commands, and Click calls it when that has its arguments.
app.user_options["preload"].add(
    click.Option(["--office-looks"], hidden=True, expose_value=False, callback=_look_at_flower)
)


@signals.celeryd_init.connect
def _be_a_worker(conf: Any = None, options: Any = None, **_: Any) -> None:  # noqa: ANN401 - Celery's own signature
    """Producers fail fast, workers are patient; and a worker keeps a result until the backend takes it."""
    _log()  # Celery would only later, and what it warns of first would be no line of the log
    read_json_plainly()
    drop_what_is_none()
    if threads := (options or {}).get("concurrency"):
        app.office = Office(app.office.settings.model_copy(update={"concurrency": threads}))
    patient = {"socket_timeout": PATIENCE_SECONDS}
    conf.broker_transport_options = {**conf.broker_transport_options, **patient}
    conf.result_backend_always_retry = True
    conf.result_backend_max_retries = 60
    conf.result_backend_max_sleep_between_retries_ms = 1_000


@signals.celeryd_init.connect
def signal_executions(**_: Any) -> None:  # noqa: ANN401 - Celery's own signature
    """Say of each run that this worker queues that some run may start (REC-2.6)."""
    when_queued(app.executions.send)


@signals.celeryd_init.connect
def _count_together(**_: Any) -> None:  # noqa: ANN401 - Celery's own signature
    """Before the pool forks: what its processes count is one worker's."""
    app.exporter.count_together(name for name in app.tasks if name.startswith("recovery."))


@signals.celeryd_after_setup.connect
def _serve_metrics(**_: Any) -> None:  # noqa: ANN401 - Celery's own signature
    app.exporter.serve()


@signals.worker_process_init.connect
def _leave_metrics_to_the_main_process(**_: Any) -> None:  # noqa: ANN401 - Celery's own signature
    app.exporter.leave()


@signals.setup_logging.connect
def _log(**_: Any) -> None:  # noqa: ANN401 - Celery's own signature
    """Keep Celery from configuring logs: structlog owns them."""
    configure_logs(app.office.settings.log_level)


@signals.import_modules.connect
def _close_flower(sender: Any = None, **_: Any) -> None:  # noqa: ANN401 - Celery's own signature
    """Keep Flower from showing this app to all, whatever configuration it was given (C31)."""
    command = click.get_current_context(silent=True)
    if sender is app and command and command.info_name == "flower":
        from office_tasks.watching import doors, options, quiet  # noqa: PLC0415 - no other command needs Flower

        doors.keep_closed()
        options.check_place()
        quiet.keep_quiet(app.office.settings.log_level)


@signals.worker_process_shutdown.connect
def _close(**_: Any) -> None:  # noqa: ANN401 - Celery's own signature
    app.office.engine.dispose()
