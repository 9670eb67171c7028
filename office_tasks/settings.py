"""Settings, read once from `OFFICE_*` (OPS-2)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from ipaddress import IPv4Address
from typing import Any, Final, Literal, Self, get_args, get_origin

from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo
from pydantic import Field, IPvAnyAddress, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from office_tasks import urls
from office_tasks.admin import LOOKBACK_HOURS
from office_tasks.admission.windows import ALLOWANCE_WINDOW, DUPLICATE_LOOKBACK
from office_tasks.errors import OfficeError

_BOUNDS: Final = (("ge", "at least"), ("le", "at most"))
_WINDOWS: Final = {"the duplicate window": DUPLICATE_LOOKBACK, "the allowance window": ALLOWANCE_WINDOW}
# What a run is still asked for after it ended: whether its task was ever started, and what the gates count.
_NEEDS_RUNS: Final = {"the longest recovery_lookback_hours": dt.timedelta(hours=max(LOOKBACK_HOURS)), **_WINDOWS}


class SettingsError(OfficeError):
    """A setting has a value that cannot work; the sentence names the variable."""


class Settings(BaseSettings):
    """What an installation chooses. The windows and the allowance are no settings (ADM-1.3)."""

    model_config = SettingsConfigDict(env_prefix="OFFICE_", frozen=True)

    database_url: SecretStr = SecretStr("postgresql+psycopg://office@localhost/office")
    broker_url: SecretStr = SecretStr("redis://localhost:6379/0")
    result_backend: SecretStr | None = Field(default=None, description="the broker, unless it is named")
    events_url: SecretStr | None = Field(default=None, description="a Redis; the broker, unless it is named")
    concurrency: int = Field(default=2, ge=1, le=256)
    visibility_timeout: int = Field(default=20, ge=6, le=43_200, description="seconds")
    soft_time_limit: int = Field(default=10, ge=1, description="seconds")
    time_limit: int = Field(default=15, ge=2, description="seconds")
    run_handler: str = Field(
        default="office_tasks.execution.handler:log_and_finish", description="package.module:function"
    )
    run_time_limit: int | None = Field(
        default=None, ge=1, le=31_536_000, description="seconds; none when it is not set"
    )
    result_expires: int = Field(default=3_600, ge=60, le=31_536_000, description="seconds")
    run_retention_days: int = Field(default=90, le=36_500, description="days")
    history_retention_days: int = Field(default=14, le=36_500, description="days")
    metrics_port: int = Field(default=0, ge=0, le=65_535, description="of a worker's main process; none when it is 0")
    metrics_address: IPvAnyAddress = Field(default=IPv4Address("127.0.0.1"), description="that it listens at")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @model_validator(mode="after")
    def _limits_are_ordered(self) -> Self:
        if not self.soft_time_limit < self.time_limit < self.visibility_timeout:
            raise ValueError(
                "OFFICE_SOFT_TIME_LIMIT < OFFICE_TIME_LIMIT < OFFICE_VISIBILITY_TIMEOUT must hold, but they are "
                f"{self.soft_time_limit}, {self.time_limit} and {self.visibility_timeout}"
            )
        return self

    @model_validator(mode="after")
    def _history_outlives_what_asks_for_it(self) -> Self:
        _refuse_less("OFFICE_RUN_RETENTION_DAYS", self.run_retention_days, _NEEDS_RUNS)
        _refuse_less("OFFICE_HISTORY_RETENTION_DAYS", self.history_retention_days, _WINDOWS)
        return self

    @model_validator(mode="after")
    def _handler_is_named(self) -> Self:
        module, colon, function = self.run_handler.partition(":")
        if not colon or not all(part.isidentifier() for part in f"{module}.{function}".split(".")):
            raise ValueError(f"OFFICE_RUN_HANDLER must be package.module:function, not {self.run_handler!r}")
        return self

    @model_validator(mode="after")
    def _driver_is_psycopg(self) -> Self:
        try:
            url = make_url(self.database_url.get_secret_value())
        except (ArgumentError, ValueError):
            raise ValueError("OFFICE_DATABASE_URL is no URL: postgresql+psycopg://user@host:port/database") from None
        if url.drivername != "postgresql+psycopg":
            raise ValueError("OFFICE_DATABASE_URL must begin with postgresql+psycopg://")
        # Host and database are told to whoever cannot connect; the rest of a password with an @ would be part of them.
        if "@" in self.database_url.get_secret_value().partition("@")[2]:
            raise ValueError(f"OFFICE_DATABASE_URL: {urls.ESCAPE}")
        return self

    @model_validator(mode="after")
    def _libpq_knows_the_options(self) -> Self:
        try:
            make_conninfo("", **dict.fromkeys(make_url(self.database_url.get_secret_value()).query, ""))
        except ProgrammingError as error:
            raise ValueError(f"OFFICE_DATABASE_URL: {error}".rstrip()) from None
        return self

    @model_validator(mode="after")
    def _urls_are_urls(self) -> Self:
        urls.check_broker("OFFICE_BROKER_URL", self.broker_url.get_secret_value())
        if self.result_backend is not None:
            urls.check_backend("OFFICE_RESULT_BACKEND", self.result_backend.get_secret_value())
        else:
            urls.check_shared("OFFICE_BROKER_URL", "OFFICE_RESULT_BACKEND", self.broker_url.get_secret_value())
        if self.events_url is not None:
            urls.check("OFFICE_EVENTS_URL", self.events_url.get_secret_value(), urls.STREAMS)
        return self

    @property
    def run_retention(self) -> dt.timedelta:
        """Return how long a run is kept after it ended."""
        return dt.timedelta(days=self.run_retention_days)

    @property
    def history_retention(self) -> dt.timedelta:
        """Return how long wakes, mutations, events and deliveries are kept after they were over."""
        return dt.timedelta(days=self.history_retention_days)

    @property
    def stream_url(self) -> str | None:
        """Return the Redis that the event stream lives in, or None when the broker is none and no other is named."""
        url = (self.events_url or self.broker_url).get_secret_value()
        return url if url.startswith(("redis://", "rediss://", "unix://")) else None

    @property
    def backend_url(self) -> str:
        """Return where results are kept."""
        return (self.result_backend or self.broker_url).get_secret_value()


def _refuse_less(variable: str, days: int, needs: Mapping[str, dt.timedelta]) -> None:
    """Refuse a retention that is not longer than whatever looks back at what it keeps (REC-3.3)."""
    what, longest = max(needs.items(), key=lambda need: need[1])
    if dt.timedelta(days=days) <= longest:
        raise ValueError(
            f"{variable} must be at least {longest.days + 1}, but it is {days}: what ended must be kept for longer "
            f"than {what} ({longest // dt.timedelta(hours=1)} h), or a purge would change what is decided"
        )


def load() -> Settings:
    """Return the settings of this process.

    Raises:
        SettingsError: one sentence for each bad value, naming its variable and never a secret.
    """
    try:
        return Settings()
    except ValidationError as error:
        raise SettingsError("; ".join(map(_sentence, error.errors(include_input=False)))) from None


def _sentence(fault: Mapping[str, Any]) -> str:
    if not fault["loc"]:
        return str(fault["msg"]).removeprefix("Value error, ")
    name = str(fault["loc"][0])
    return f"OFFICE_{name.upper()}: must be {_accepted(Settings.model_fields[name])}"


def _accepted(field: FieldInfo) -> str:
    """Return what a setting takes, as its declaration says: pydantic's own words are for programmers."""
    if get_origin(field.annotation) is Literal:
        *others, last = get_args(field.annotation)
        return f"{', '.join(others)} or {last}"
    bounds = [
        f"{word} {getattr(one, bound)}" for one in field.metadata for bound, word in _BOUNDS if hasattr(one, bound)
    ]
    # Each number has a bound; texts are never refused here, and what is left is the one address.
    return f"a whole number, {' and '.join(bounds)}" if bounds else "an IP address"
