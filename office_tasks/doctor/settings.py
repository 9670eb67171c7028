"""What the environment says: settings, the handler, Flower."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from typing import Final

from db.claims import LEASE
from office_tasks.doctor.finding import Finding, error, ok, warn
from office_tasks.execution import handler
from office_tasks.settings import Settings
from office_tasks.watching.login import opens_api

_LEASE: Final = int(LEASE.total_seconds())
_LOGINS: Final = ("FLOWER_BASIC_AUTH", "FLOWER_AUTH")
_FLOWER: Final = "Flower"


def limits(settings: Settings) -> Finding:
    """Check the visibility time-out against the limits, which loading the settings does, and against the lease."""
    seconds = settings.visibility_timeout
    said = (
        f"a message of a dead worker comes back after {seconds} s; the hard limit is {settings.time_limit} s, "
        f"the lease of a run {_LEASE} s"
    )
    if seconds <= _LEASE:
        return ok("visibility time-out", said)
    return warn(
        "visibility time-out",
        said,
        f"set OFFICE_VISIBILITY_TIMEOUT to {_LEASE} or less: a wake whose worker died waits longer than a run whose "
        "worker died",
    )


def retention(settings: Settings) -> Finding:
    """Tell how long things are kept; loading the settings refuses what would change decisions."""
    return ok(
        "retention",
        f"ended runs are kept {settings.run_retention_days} days, decided wakes and settled mutations "
        f"{settings.history_retention_days} days",
    )


def run_handler(settings: Settings) -> Finding:
    """Import what executes runs, as a worker would."""
    try:
        handler.load(settings.run_handler)
    except (handler.HandlerError, SystemExit) as fault:
        said = (
            str(fault) if isinstance(fault, handler.HandlerError) else "importing OFFICE_RUN_HANDLER ends the process"
        )
        return error("run handler", said, "correct it, and start this where the workers of the queue execution start")
    return ok("run handler", f"{settings.run_handler} can be imported here")


def flower(environment: Mapping[str, str]) -> list[Finding]:
    """Check who could reach a Flower of this environment (`office flower` refuses to start without a login)."""
    named = {name: value for name, value in environment.items() if name.startswith("FLOWER_") and value}
    if not named:
        return [ok(_FLOWER, "nothing is set here; `office flower` wants a login and listens on 127.0.0.1")]
    return list(_exposures(named)) or [ok(_FLOWER, "it has a login, and listens on this machine only")]


def _exposures(named: Mapping[str, str]) -> Iterator[Finding]:
    has_login = any(name in named for name in _LOGINS)
    if not has_login:
        yield error(_FLOWER, "it is configured without a login", "set FLOWER_BASIC_AUTH=user:password")
    if opens_api(named.get("FLOWER_UNAUTHENTICATED_API", "")):
        yield _open_api(has_login=has_login)
    if "FLOWER_ADDRESS" in named and not _is_local(named["FLOWER_ADDRESS"]):
        yield warn(
            _FLOWER,
            f"it listens on {named['FLOWER_ADDRESS']}, beyond this machine",
            "set FLOWER_ADDRESS=127.0.0.1, or see that only a proxy with TLS reaches its port",
        )


def _open_api(*, has_login: bool) -> Finding:
    advice = "unset FLOWER_UNAUTHENTICATED_API"
    if has_login:
        return warn(_FLOWER, "its API would be open to all, should its login be taken away", advice)
    return error(_FLOWER, "its API is open to all: whoever reaches it can send tasks and stop workers", advice)


def _is_local(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
