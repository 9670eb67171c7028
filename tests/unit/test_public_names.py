"""What `from office_tasks import …` offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import office_tasks


def test_every_public_name_is_there():
    for name in office_tasks.__all__:
        assert getattr(office_tasks, name) is not None


def test_every_celery_task_of_the_app_is_public():
    from office_tasks import tasks

    ours = {name.removeprefix("office.") for name in tasks.app.tasks if name.startswith("office.")}
    assert ours <= set(office_tasks.__all__)


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = office_tasks.nonsense


@pytest.mark.parametrize("loaded", ["import office_tasks", "from office_tasks import RetryAt, RunContext"])
def test_what_a_handler_imports_loads_no_celery(loaded):
    """REC-2.4: a handler's module, and its tests, need neither Celery nor settings."""
    asked = f"import sys; {loaded}; print('celery' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
