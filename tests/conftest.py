"""Fixtures of all tests."""

pytest_plugins = ["tests.nodes.plugin"]
