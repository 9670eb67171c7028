"""The windows and the allowance. Constants of the contract, not settings (ADM-1.3)."""

from __future__ import annotations

import datetime as dt
from typing import Final

COALESCE_WINDOW: Final = dt.timedelta(seconds=5)
DUPLICATE_LOOKBACK: Final = dt.timedelta(hours=24)
ALLOWANCE_WINDOW: Final = dt.timedelta(minutes=10)
ASSIGNMENT_ALLOWANCE: Final = 5
