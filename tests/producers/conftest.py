"""A furnished office whose producers are called in one line."""

from __future__ import annotations

import pytest

from tests.admission.conftest import acme, admission_engine, admission_url  # noqa: F401 - they are fixtures
from tests.producers.acts import Acts


@pytest.fixture
def acts(acme):  # noqa: F811 - the fixture that is imported
    """The producers of the office `acme`."""
    return Acts(acme)
