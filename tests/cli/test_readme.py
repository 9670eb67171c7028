"""The README's example does what its comments say, through a real worker."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.cli.conftest import ROOT, environment

SAID = ["queued", "coalesced", "queued", "deduped", "agent 'sam' is stopped"]


@pytest.mark.usefixtures("celery_setup")
def test_the_example_runs(office_env):
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(example.splitlines()) <= 30
    done = subprocess.run(
        [sys.executable, "-c", example],
        env=environment(**office_env),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.splitlines(), done.stderr) == (SAID, "")
