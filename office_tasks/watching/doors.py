"""The lock: no login, no Flower; with one, nothing is told before it (C31), and no page is shown within another's."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from flower.options import options
from flower.urls import settings
from flower.views import BaseHandler
from flower.views.auth import LoginHandler
from flower.views.monitor import Healthcheck
from tornado.httputil import HTTPHeaders
from tornado.routing import URLSpec
from tornado.web import HTTPError, OutputTransform, url

from office_tasks.prose import watched
from office_tasks.watching.login import LOOPBACK, NO_LOGIN, OPEN_API, are_logins, opens_api

# A health check says "OK" and nothing else; whoever logs in by OAuth does so here.
_OPEN: Final = (Healthcheck, LoginHandler)
_UNFRAMED: Final = {"X-Frame-Options": "DENY", "Content-Security-Policy": "frame-ancestors 'none'"}


def keep_closed() -> None:
    """Exit unless Flower has a login; without an address of its choice it listens on this machine alone."""
    if not are_logins(options.basic_auth or []):
        sys.exit(NO_LOGIN)
    if opens_api(os.environ.get("FLOWER_UNAUTHENTICATED_API", "")):
        sys.exit(OPEN_API)
    options.address = options.address or LOOPBACK


def refuse_frames() -> None:
    """Have every answer say that it belongs in no frame, static files and refusals too.

    Whoever is logged in could be made to click there on what he does not see. To be called before Flower starts.
    """
    settings["transforms"] = [_Unframed]


class _Unframed(OutputTransform):
    # Handlers are many, and tornado has some of its own; what they send goes through here.
    def transform_first_chunk(
        self, status_code: int, headers: HTTPHeaders, chunk: bytes, finishing: bool
    ) -> tuple[int, HTTPHeaders, bytes]:
        headers.update(_UNFRAMED)
        return super().transform_first_chunk(status_code, headers, chunk, finishing)


def lock(handlers: list[Any]) -> None:
    """Put the login before each of Flower's handlers that has not got it yet, in place.

    Flower asks for it in the methods that a handler has: the others would answer 405, and `/metrics` anybody.
    """
    for number, each in enumerate(handlers):
        if isinstance(each, URLSpec):
            handlers[number] = url(each.regex.pattern, _locked(each.handler_class), each.kwargs, each.name)
        else:
            handlers[number] = (each[0], _locked(each[1]), *each[2:])


def _locked(handler: type[Any]) -> type[Any]:
    if not issubclass(handler, BaseHandler) or issubclass(handler, (*_OPEN, _Locked)):
        return handler
    return type(handler.__name__, (_Locked, handler), {})


class _Locked(BaseHandler):  # type: ignore[misc]  # Flower has no types
    # Stands before one of Flower's handlers: what it goes on to is that one's.
    def prepare(self) -> Any:  # noqa: ANN401 - perhaps something to await
        if not self.current_user:
            raise HTTPError(401)
        return super().prepare()

    def safe_result(self, result: object) -> Any:  # noqa: ANN401 - Flower's own signature
        return super().safe_result(watched(result) if isinstance(result, Mapping | list) else result)
