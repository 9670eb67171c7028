"""Why a replay cannot begin, or had to stop."""

from __future__ import annotations

from office_tasks.errors import OfficeError


class ReplayError(OfficeError):
    """The replay cannot begin: nothing was written. One sentence that says what to do."""

    exit_code = 2


class ReplayStopped(ReplayError):
    """The replay began and could not go on; what it applied is applied, and a second run continues."""

    exit_code = 1
