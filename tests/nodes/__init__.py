"""Nodes of the integration tests: a broker, a backend and workers that a test can kill, pause and restart.

They are pytest-celery's own nodes. Where a Docker engine answers they are containers; elsewhere `ProcHandle`
stands in for docker's `Container` and each node is a process. `PYTEST_CELERY_NODES=process|docker` forces one.
"""
