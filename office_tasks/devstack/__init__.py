"""Real PostgreSQL and Redis as plain child processes, for the demo, the tests and a throwaway replay.

One supervisor owns the servers and passes their URLs on; everything else only connects.
"""

from office_tasks.devstack.errors import DevStackError
from office_tasks.devstack.postgres import Postgres
from office_tasks.devstack.redis import Redis
from office_tasks.devstack.stack import DevStack

__all__ = ["DevStack", "DevStackError", "Postgres", "Redis"]
