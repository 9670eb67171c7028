"""The URLs that Celery would otherwise find fault with in the middle of its start, in a trace of its own."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final
from urllib.parse import SplitResult, parse_qsl, urlsplit

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

# A closed list (docs/decisions/0024). Kombu and Celery know more names, most of them of drivers that are not here.
BROKERS: Final = ("redis", "rediss", "redis+socket", "amqp", "amqps", "pyamqp")
BACKENDS: Final = ("redis", "rediss", "rpc", "db+…")
STREAMS: Final = ("redis", "rediss", "unix")

ESCAPE: Final = "in a password @ : / ? # must be written as %40 %3A %2F %3F %23"

_NUMBERED: Final = ("redis", "rediss")
_NUMBER: Final = re.compile(r"/?\d*")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_DATABASE: Final = "db+"
_TLS: Final = frozenset({"ssl_cert_reqs", "ssl_ca_certs", "ssl_certfile", "ssl_keyfile"})
# What a URL may end in; everything else that kombu and redis-py might be told is chosen in `configuration`.
_OPTIONS: Final = {"rediss": _TLS, "amqps": _TLS | {"heartbeat"}, "redis+socket": frozenset({"virtual_host"})} | (
    dict.fromkeys(("amqp", "pyamqp"), frozenset({"heartbeat"}))
)
_VALUES: Final = {
    "ssl_cert_reqs": ("required, optional or none", re.compile("required|optional|none")),
    "heartbeat": ("a number of seconds", re.compile(r"\d+")),
    "virtual_host": ("the number of a database", _NUMBER),
}


def check(variable: str, urls: str, schemes: Collection[str]) -> None:
    """Let a URL pass, or several joined with `;`, when each has a known scheme, and port and database are numbers.

    Raises:
        ValueError: the sentence names the variable, and holds nothing of the URL but its scheme.
    """
    for url in urls.split(";"):
        scheme, mark, _ = url.partition("://")
        if not mark or not _SCHEME.fullmatch(scheme):
            raise ValueError(f"{variable} is no URL: redis://:password@host:port/number")
        if _known(scheme) not in schemes:
            raise ValueError(f"{variable}: {scheme}:// is not known here; {_listed(schemes)} are")
        parts = _parts(variable, url)
        # What follows the host is told to whoever cannot connect, and `/`, `?` or `#` would end the password early.
        if parts.netloc and "@" in parts.path + parts.query + parts.fragment:
            raise ValueError(f"{variable}: {ESCAPE}")
        if scheme in _NUMBERED and not _NUMBER.fullmatch(parts.path):
            raise ValueError(f"{variable}: its database is no number: redis://:password@host:port/number")


def check_broker(variable: str, urls: str) -> None:
    """Let the URLs of a broker pass, as `check` does, when nothing else is asked for than the office leaves open.

    Raises:
        ValueError: the sentence names the variable.
    """
    check(variable, urls, BROKERS)
    for url in urls.split(";"):
        _check_options(variable, url)


def check_backend(variable: str, url: str) -> None:
    """Let the URL of a result backend pass: a Redis, `rpc://`, or a database whose driver is there.

    Raises:
        ValueError: the sentence names the variable.
    """
    check(variable, url, BACKENDS)
    scheme = url.partition("://")[0]
    if scheme.startswith(_DATABASE):
        _check_driver(variable, url.removeprefix(_DATABASE))
        return
    if ";" in url:
        raise ValueError(f"{variable} names several servers, and results are kept in one")
    _check_options(variable, url)
    if scheme == "rediss" and "ssl_cert_reqs" not in urlsplit(url).query:
        raise ValueError(f"{variable}: Celery wants a rediss:// of results to end in ?ssl_cert_reqs=required")


def check_shared(broker: str, backend: str, urls: str) -> None:
    """Let a broker pass that is to keep the results as well; `broker` and `backend` are the two variables.

    Raises:
        ValueError: the sentence says that the second variable must be named.
    """
    scheme = urls.partition("://")[0]
    if scheme not in BACKENDS:
        raise ValueError(f"{backend} must be named: a broker of {scheme}:// keeps no results")
    if ";" in urls:
        raise ValueError(f"{backend} must be named: {broker} names several servers, and results are kept in one")
    check_backend(broker, urls)


def place(url: URL) -> str:
    """Return host, port and database of a PostgreSQL, never a password; libpq chooses what is not named."""
    database = url.database or "(the default database)"
    return f"{url.host}:{url.port or 5432}/{database}" if url.host else f"{database} at its default host"


def _known(scheme: str) -> str:
    """Return what a scheme is listed as: that of a database has its driver after the plus."""
    return f"{_DATABASE}…" if scheme.startswith(_DATABASE) else scheme


def _listed(schemes: Collection[str]) -> str:
    *others, last = (f"{scheme}://" for scheme in schemes)
    return f"{', '.join(others)} and {last}"


def _parts(variable: str, url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ValueError(f"{variable}: its host is none; an IPv6 address stands between [ and ]") from None
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(f"{variable}: its port is no number from 0 to 65535") from None
    return parts


def _check_options(variable: str, url: str) -> None:
    """Refuse what would be passed on to a driver that does not know it, or not as a text."""
    scheme = url.partition("://")[0]
    accepted = _OPTIONS.get(scheme, frozenset())
    for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True):
        if name not in accepted:
            which = f"none but {', '.join(sorted(accepted))}" if accepted else "none"
            raise ValueError(f"{variable}: after the ? of {scheme}:// stands an option that is not known; {which} is")
        words, pattern = _VALUES.get(name, ("", None))
        if pattern and not pattern.fullmatch(value):
            raise ValueError(f"{variable}: {name} must be {words}")


def _check_driver(variable: str, url: str) -> None:
    """Refuse a database that SQLAlchemy cannot speak to; nothing is opened."""
    scheme = url.partition("://")[0]
    try:
        make_url(url).get_dialect().import_dbapi()
    except NoSuchModuleError:
        raise ValueError(f"{variable}: SQLAlchemy knows no {scheme}://") from None
    except (ArgumentError, ValueError):
        raise ValueError(f"{variable} is no URL: db+postgresql+psycopg://user@host:port/database") from None
    except ImportError as error:
        raise ValueError(f"{variable}: {scheme}:// needs {error.name}, which is missing") from None
