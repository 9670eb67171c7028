"""What the tests with real workers share."""

from __future__ import annotations

from itertools import count

import pytest

from tests.integration.caller import Caller
from tests.integration.faults import Fault


@pytest.fixture
def caller(celery_setup_app, broker, board):
    """Who asks. Needs no worker; the office is furnished."""
    return Caller(celery_setup_app, broker.container.client, board)


@pytest.fixture
def worker(celery_setup):
    """The worker of the test, alone unless the test starts more."""
    return celery_setup.worker


@pytest.fixture
def arm(tmp_path):
    """Return a function that makes a fault of a verb, off until it is armed."""
    numbers = count()
    return lambda verb: Fault(verb, tmp_path / f"{verb}-{next(numbers)}")
