"""For tests of code that works with an office: `pytest_plugins = ["office_tasks.testing"]`.

Real gates, real rows, in a real PostgreSQL; the clock is virtual, and no broker and no worker run. Importing opens
nothing. docs/testing-your-code.md shows how. Nothing here asserts by itself: PYTEST_DONT_REWRITE.
"""

from office_tasks.testing.assertions import assert_admitted, assert_not_admitted, assert_nothing_owed, assert_outcome
from office_tasks.testing.plugin import _office_engine, office, office_database_url, office_server_url
from office_tasks.testing.trial import Clock, TrialOffice

__all__ = [
    "Clock",
    "TrialOffice",
    "_office_engine",
    "assert_admitted",
    "assert_not_admitted",
    "assert_nothing_owed",
    "assert_outcome",
    "office",
    "office_database_url",
    "office_server_url",
]
