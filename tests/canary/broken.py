"""A module that cannot be imported where the environment says so, and says why with what it should not."""

from __future__ import annotations

import os

if "CANARY_TEXT" in os.environ:
    raise RuntimeError(os.environ["CANARY_TEXT"])
