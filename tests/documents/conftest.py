"""The walk takes minutes: it begins first, beside the rest of the suite."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: "test_walk" not in item.nodeid)
