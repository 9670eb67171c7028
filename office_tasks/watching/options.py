"""What Flower's options take: a value that none can be is one sentence, which repeats no value (OPS-1.3).

Flower would end with a trace. Its environment and its command line are looked at before it reads them; a configuration
file is Python, and a mistake in it is shown as Python shows one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from socket import socket
from types import FunctionType
from typing import Any, Final, NoReturn

from flower.options import DEFAULT_CONFIG_FILE
from flower.utils import abs_path, strtobool
from tornado.netutil import bind_sockets, bind_unix_socket
from tornado.options import _Option, options

_PREFIX: Final = "FLOWER_"
_KINDS: Final[Mapping[type, str]] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    FunctionType: "a function, which only a configuration file can name",
}
_LEVELS: Final = ("debug", "info", "warning", "error", "none")
_FILES: Final = ("certfile", "keyfile", "ca_certs")
# What an option takes besides its type.
_MORE: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "port": ("a whole number from 0 to 65535", lambda port: port in range(65_536)),
    "logging": (" or ".join((", ".join(_LEVELS[:-1]), _LEVELS[-1])), lambda level: level.lower() in _LEVELS),
    **dict.fromkeys(_FILES, ("the name of a file that is there", lambda name: Path(abs_path(name)).is_file())),
}


def check(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Exit with 2 and a sentence when the environment or the command line gives an option what it cannot take."""
    if ":" in environment.get("FLOWER_USER", ""):
        _refuse("FLOWER_USER must not have a colon in it: in a login the password begins after the first")
    for variable, value in environment.items():
        option = _option(variable.removeprefix(_PREFIX).lower()) if variable.startswith(_PREFIX) else None
        if option and not _takes(option, value, from_environment=True):
            _refuse_value(variable, option)
    for word, option, given in _given(words):
        if given is None:
            _refuse(f"{word} needs its value after a =, as in {word}=VALUE")
        if not _takes(option, given):
            _refuse_value(word, option)
    _check_file(words, environment)


def check_place() -> None:
    """Exit with 2 and a sentence when Flower cannot listen where its options, the file's too, say."""
    place = options.unix_socket or f"{options.address}, port {options.port}"
    try:
        sockets = [bind_unix_socket(options.unix_socket)] if options.unix_socket else _bound()
    except (OSError, ValueError) as error:
        _refuse(f"Flower cannot listen on {place}: {getattr(error, 'strerror', None) or error}")
    for each in sockets:
        each.close()


def _bound() -> list[socket]:
    bound: list[socket] = bind_sockets(options.port, address=options.address)
    return bound


def _given(words: Sequence[str]) -> Iterator[tuple[str, _Option, str | None]]:
    for word in words:
        name, joined, value = word.partition("=")
        option = _option(name.lstrip("-")) if name.startswith("-") else None
        if option:
            yield name, option, value if joined else "true" if option.type is bool else None


def _option(name: str) -> _Option | None:
    found: _Option | None = options._options.get(name.replace("_", "-"))  # noqa: SLF001 - Flower itself looks there
    return found


def _takes(option: _Option, value: str, *, from_environment: bool = False) -> bool:
    """Tell whether a text is a value. `no` is none on a command line, where tornado takes it for true."""
    trial = copy(option)
    trial.callback = None
    try:
        found = _Option.parse(trial, value)
        alike = option.type is not bool or bool(strtobool(value)) is found or from_environment
    except (ValueError, TypeError):
        return False
    return alike and _fits(option, found)


def _fits(option: _Option, value: object) -> bool:
    return not value or option.name not in _MORE or _MORE[option.name][1](value)


def _check_file(words: Sequence[str], environment: Mapping[str, str]) -> None:
    named = [(word, value) for word, option, value in _given(words) if value and option.name == "conf"]
    named = named[-1:] or [(f"{_PREFIX}CONF", environment.get(f"{_PREFIX}CONF", DEFAULT_CONFIG_FILE))]
    [(name, conf)] = named
    if conf != DEFAULT_CONFIG_FILE and not (Path(conf).is_file() and os.access(conf, os.R_OK)):
        _refuse(f"{name} takes a file that can be read, and {conf} is none")


def _refuse_value(given: str, option: _Option) -> NoReturn:
    takes = _MORE[option.name][0] if option.name in _MORE else _KINDS[option.type]
    _refuse(f"{given} takes {takes}{', or several with commas between' if option.multiple else ''}")


def _refuse(sentence: str) -> NoReturn:
    sys.stderr.write(f"office: {sentence}\n")
    sys.exit(2)
