"""Admission: the one seam between a wake and a run. `gates` shows the six gates in their order."""

from office_tasks.admission.admit import admit, poison, recall
from office_tasks.admission.decision import Answer, Outcome
from office_tasks.admission.gates import GATES
from office_tasks.admission.wake import BY_DESIGN, Keyless, Wake, stored, wake
from office_tasks.admission.windows import (
    ALLOWANCE_WINDOW,
    ASSIGNMENT_ALLOWANCE,
    COALESCE_WINDOW,
    DUPLICATE_LOOKBACK,
)

__all__ = [
    "ALLOWANCE_WINDOW",
    "ASSIGNMENT_ALLOWANCE",
    "BY_DESIGN",
    "COALESCE_WINDOW",
    "DUPLICATE_LOOKBACK",
    "GATES",
    "Answer",
    "Keyless",
    "Outcome",
    "Wake",
    "admit",
    "poison",
    "recall",
    "stored",
    "wake",
]
