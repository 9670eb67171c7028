"""What P10 compares with: a Celery app of one task that does nothing, in a process that has SQLAlchemy imported.

`python -m bench.apps.bare NAME` runs its worker without Celery's command line, which loads Flower if there is one.
"""

from __future__ import annotations

import os
import sys

import psycopg
import sqlalchemy
from celery import Celery

BROKER = "OFFICE_BROKER_URL"
NOOP = "bench.bare_noop"
# What the office's engine would load as well: SQLAlchemy loads a dialect when an engine is made.
USED = (sqlalchemy.create_engine("postgresql+psycopg://nobody@127.0.0.1/none"), psycopg)

app = Celery("bench_bare", broker=os.environ.get(BROKER), backend=os.environ.get(BROKER), set_as_current=False)


@app.task(name=NOOP, shared=False)
def noop() -> None:
    """Do nothing."""


if __name__ == "__main__":
    app.Worker(hostname=sys.argv[1], pool="prefork", concurrency=1, loglevel="INFO").start()
