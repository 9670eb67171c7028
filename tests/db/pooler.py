"""A pooler in transaction mode, as small as one can be: after each transaction the client gets another backend."""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import closing, suppress

_REQUESTS = {80877103, 80877104}  # for TLS, for GSS encryption


class Pooler:
    """Listens on the loopback address before one Postgres, while it is used as a context manager.

    Args:
        host: the server's.
        port: the server's.
        passes_options: False drops the session settings of a client's start-up message, as PgBouncer does under
            `ignore_startup_parameters = options`.
    """

    BACKENDS = 3

    def __init__(self, host: str, port: int, *, passes_options: bool = True) -> None:
        self._server = (host, port)
        self._passes_options = passes_options
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        backends = [socket.create_connection(self._server) for _ in range(self.BACKENDS)]
        with closing(client), suppress(OSError, EOFError):
            startup = self._startup(client)
            for number, backend in enumerate(backends):
                backend.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                backend.sendall(startup)
                self._relay(backend, client if number == 0 else None)
            while self._transaction(client, backends[0]):
                backends.append(backends.pop(0))
        for backend in backends:
            backend.close()

    def _startup(self, client: socket.socket) -> bytes:
        while True:
            length = _exactly(client, 4)
            body = _exactly(client, struct.unpack("!I", length)[0] - 4)
            if struct.unpack("!I", body[:4])[0] not in _REQUESTS:
                break
            client.sendall(b"N")
        if not self._passes_options:
            words = body[4:].split(b"\0")
            pairs = [pair for pair in zip(words[::2], words[1::2], strict=False) if pair[0] not in (b"options", b"")]
            body = body[:4] + b"".join(name + b"\0" + value + b"\0" for name, value in pairs) + b"\0"
        return struct.pack("!I", len(body) + 4) + body

    def _transaction(self, client: socket.socket, backend: socket.socket) -> bool:
        status = b"T"
        while status != b"I":
            kind, message = _message(client)
            backend.sendall(message)
            if kind == b"X":
                return False
            if kind in b"QS":
                status = self._relay(backend, client)
        return True

    @staticmethod
    def _relay(backend: socket.socket, client: socket.socket | None) -> bytes:
        """Pass on what the backend says until it is ready; return the status of its transaction."""
        while True:
            kind, message = _message(backend)
            if client:
                client.sendall(message)
            if kind == b"Z":
                return message[5:6]


def _message(source: socket.socket) -> tuple[bytes, bytes]:
    head = _exactly(source, 5)
    return head[:1], head + _exactly(source, struct.unpack("!I", head[1:])[0] - 4)


def _exactly(source: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        more = source.recv(size - len(read))
        if not more:
            raise EOFError
        read += more
    return read
