"""Which URLs of brokers and result backends are accepted, and what is said of the others."""

from __future__ import annotations

import socket

import pytest
from celery import Celery
from kombu import Connection
from sqlalchemy import make_url

from office_tasks.configuration import configuration
from office_tasks.settings import SettingsError, load
from office_tasks.urls import place

TLS = "?ssl_cert_reqs=required"
REDIS = "redis://:secret@h:1/0"
BROKERS = (
    "redis://", REDIS, "redis://[::1]:1/0", f"{REDIS};redis://:secret@g/0", f"rediss://h/0{TLS}&ssl_ca_certs=/c",
    "rediss://h/0", "redis+socket:///s", "redis+socket:///s?virtual_host=3",
    "amqp://u:secret@h:1//", "amqp://h//?heartbeat=30", "pyamqp://h//", f"amqps://h//{TLS}",
)  # fmt: skip
BACKENDS = (REDIS, f"rediss://h/0{TLS}", "rpc://", "db+postgresql+psycopg://u:secret@h/d", "db+sqlite:///:memory:")

NAMED = "OFFICE_RESULT_BACKEND must be named: "
# What is set, by name: (broker, result backend, what the sentence begins with, what else is in it)
REFUSED = {
    "amqp alone": ("amqp://u:secret@h//", None, NAMED, "a broker of amqp:// keeps no results"),
    "a socket alone": ("redis+socket:///s", None, NAMED, "a broker of redis+socket:// keeps no results"),
    "several alone": (f"{REDIS};{REDIS}", None, NAMED, "OFFICE_BROKER_URL names several servers"),
    "TLS alone": ("rediss://:secret@h/0", None, "OFFICE_BROKER_URL: ", TLS),
    "memory": ("memory://", REDIS, "OFFICE_BROKER_URL: memory:// is not known here; ", "amqp://"),
    "files": ("filesystem://", REDIS, "OFFICE_BROKER_URL: filesystem:// is not known here; ", "redis://"),
    "sqs": ("sqs://k:secret@", REDIS, "OFFICE_BROKER_URL: sqs:// is not known here; ", "redis://"),
    "kafka": ("kafka://x", REDIS, "OFFICE_BROKER_URL: kafka:// is not known here; ", "redis://"),
    "sentinel": ("sentinel://h", REDIS, "OFFICE_BROKER_URL: sentinel:// is not known here; ", "redis://"),
    "not closed": ("redis://:secret@[::1/0", REDIS, "OFFICE_BROKER_URL: its host is none; ", "between [ and ]"),
    "option": (f"{REDIS}?socket_timeout=secret", REDIS, "OFFICE_BROKER_URL: after the ? of redis:// ", "none is"),
    "option of TLS": (f"amqps://h//{TLS}&a=secret", REDIS, "OFFICE_BROKER_URL: ", "none but heartbeat, ssl_ca_certs, "),
    "certificates": ("rediss://h/0?ssl_cert_reqs=secret", REDIS, "OFFICE_BROKER_URL: ssl_cert_reqs must be ", "none"),
    "heartbeat": ("amqp://h//?heartbeat=secret", REDIS, "OFFICE_BROKER_URL: heartbeat must be ", "seconds"),
    "mongodb": (REDIS, "mongodb://u:secret@h", "OFFICE_RESULT_BACKEND: mongodb:// is not known here; ", "db+…://"),
    "no dialect": (REDIS, "db+banana://u:secret@h", "OFFICE_RESULT_BACKEND: SQLAlchemy knows no ", "banana://"),
    "no driver": (REDIS, "db+mysql://u:secret@h", "OFFICE_RESULT_BACKEND: mysql:// needs MySQLdb", "missing"),
    "several kept": (REDIS, f"{REDIS};{REDIS}", "OFFICE_RESULT_BACKEND names several servers", "kept in one"),
    "backend of TLS": (REDIS, "rediss://:secret@h/0", "OFFICE_RESULT_BACKEND: ", TLS),
    "backend's socket": (REDIS, "redis+socket:///s", "OFFICE_RESULT_BACKEND: redis+socket:// is not ", "rpc://"),
    "backend's option": (REDIS, f"{REDIS}?zork=secret", "OFFICE_RESULT_BACKEND: after the ? ", "none is"),
}  # fmt: skip


@pytest.fixture
def loaded(monkeypatch):
    """Load settings with a broker and a result backend, where connecting is an error."""

    def connect(*_):
        raise AssertionError("a connection was opened")

    def load_with(broker, backend):
        monkeypatch.setenv("OFFICE_BROKER_URL", broker)
        monkeypatch.delenv("OFFICE_RESULT_BACKEND", raising=False)
        if backend is not None:
            monkeypatch.setenv("OFFICE_RESULT_BACKEND", backend)
        return load()

    monkeypatch.setattr(socket.socket, "connect", connect)
    return load_with


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_cannot_work_is_one_sentence(loaded, case):
    """OPS-1.3, OPS-2: it names the variable to change, and no secret."""
    broker, backend, begins, words = case
    with pytest.raises(SettingsError) as refused:
        loaded(broker, backend)
    said = str(refused.value)
    assert said.startswith(begins)
    assert words in said
    assert ("secret" in said, said.count("\n")) == (False, 0)


@pytest.mark.parametrize("url", BROKERS)
def test_a_broker_that_is_accepted_has_its_driver(loaded, url):
    """OPS-2: RabbitMQ works by URL; what the check lets pass, kombu can make."""
    conf = configuration(loaded(url, REDIS))
    with Connection(conf["broker_url"], transport_options=conf["broker_transport_options"]) as connection:
        assert connection.transport.driver_type in ("redis", "amqp")


@pytest.mark.parametrize("url", BACKENDS)
def test_a_result_backend_that_is_accepted_has_its_driver(loaded, url):
    """OPS-2: what the check lets pass, Celery can make; a database would be opened at once, so it is told to wait."""
    app = Celery("kept", set_as_current=False)
    app.conf.update(configuration(loaded("amqp://h//", url)), database_create_tables_at_setup=False)
    assert app.backend.as_uri()
    app.close()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("o:secret@h:1/d", "h:1/d"),
        ("h", "h:5432/(the default database)"),
        ("/d", "d at its default host"),
        ("", "(the default database) at its default host"),
    ],
)
def test_a_database_is_named_by_what_its_url_names(url, said):
    """OPS-1.3: no password, and nothing that is not there."""
    assert place(make_url(f"postgresql+psycopg://{url}")) == said
