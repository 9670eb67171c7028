"""What Celery is told, once. Each value that bounds a wait or a loss was tried against the fault it is for."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, Final

from db.leases import GRACE
from office_tasks.settings import Settings

# A producer must hear within seconds that the broker does not answer.
_FAIL_FAST: Final = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}
# A worker has nobody waiting for it, and a slow answer is better than a lost connection.
PATIENCE_SECONDS: Final = 5

UNLIMITED: Final = 10 * 365 * 24 * 3_600
HARD_LIMIT_MARGIN: Final = 10

REDBEAT_LOCK_SECONDS: Final = 30
REDBEAT_LOOP_SECONDS: Final = 5

QUEUES: Final = ("admission", "recovery", "execution")


def configuration(settings: Settings) -> dict[str, Any]:
    """Return Celery's configuration."""
    return {
        **_transport(settings),
        **_delivery(settings),
        "task_serializer": "json",
        "result_serializer": "json",
        "accept_content": ["json"],
        "result_accept_content": ["json"],
        "enable_utc": True,
        "timezone": "UTC",
        "task_default_queue": "admission",
        "task_routes": {"recovery.*": {"queue": "recovery"}, "office.execute_run": {"queue": "execution"}},
        "task_track_started": True,
        "worker_send_task_events": True,
        "task_send_sent_event": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_concurrency": settings.concurrency,
        "worker_consumer": "office_tasks.consumer:OfficeConsumer",
        **_redbeat(settings),
    }


def _transport(settings: Settings) -> dict[str, Any]:
    sockets = {"socket_timeout": 1, "socket_connect_timeout": 1, "socket_keepalive": True}
    return {
        "broker_url": settings.broker_url.get_secret_value(),
        "broker_transport_options": {
            "visibility_timeout": settings.visibility_timeout,
            "unacked_restore_interval": 5,
            "unacked_restore_throttle": 1,
            **sockets,
            **_FAIL_FAST,
        },
        "broker_connection_timeout": 1,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_pool_acquire_timeout": 2,
        "task_publish_retry_policy": _FAIL_FAST,
        "result_backend": settings.backend_url,
        "result_expires": settings.result_expires,
        "result_backend_transport_options": {"retry_policy": _FAIL_FAST},
        **{f"redis_{name}": value for name, value in sockets.items()},
    }


def _delivery(settings: Settings) -> dict[str, Any]:
    """At least once: every Celery task is idempotent on its own id, and deadly messages are bounded (ADM-10.5)."""
    return {
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_ignore_result": False,
        "worker_prefetch_multiplier": 1,
        "worker_cancel_long_running_tasks_on_connection_loss": True,
        "worker_soft_shutdown_timeout": 8,
        "task_soft_time_limit": settings.soft_time_limit,
        "task_time_limit": settings.time_limit,
        **_run_limits(settings),
    }


def _run_limits(settings: Settings) -> dict[str, Any]:
    """Limits of `office.execute_run` alone: a run may take days, and Celery knows no task that is without a limit."""
    soft = settings.run_time_limit or UNLIMITED
    # Ours comes first: what a handler was given up for should stand on its run before its process is killed.
    return {"office_run_soft_limit": soft, "office_run_hard_limit": soft + GRACE.total_seconds() + HARD_LIMIT_MARGIN}


def _redbeat(settings: Settings) -> dict[str, Any]:
    """What RedBeat needs where it is installed and the broker is a Redis to keep its lock in (REC-3.4)."""
    url = settings.broker_url.get_secret_value()
    if find_spec("redbeat") is None or not url.startswith(("redis://", "rediss://")):
        return {}
    return {
        "redbeat_redis_url": url,
        "redbeat_redis_options": {"socket_timeout": PATIENCE_SECONDS, "socket_connect_timeout": PATIENCE_SECONDS},
        # Whoever stands by looks every loop whether the lock is free, and a dead one's frees itself after this.
        "redbeat_lock_timeout": REDBEAT_LOCK_SECONDS,
        "beat_max_loop_interval": REDBEAT_LOOP_SECONDS,
    }
