"""Instants about the present one of a test: set when it begins, to the second, so that a sentence can be pinned."""

from __future__ import annotations

import datetime as dt

_began = [dt.datetime.now(dt.UTC)]


def begin() -> None:
    _began[0] = dt.datetime.now(dt.UTC).replace(microsecond=0)


def ago(**delta) -> dt.datetime:
    return _began[0] - dt.timedelta(**delta)


def coming(**delta) -> dt.datetime:
    return _began[0] + dt.timedelta(**delta)


def utc(instant: dt.datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S} UTC"
