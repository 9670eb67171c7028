"""What can go wrong with the embedded servers, in sentences that say what to do."""

from office_tasks.errors import OfficeError


class DevStackError(OfficeError):
    """An embedded server cannot be started, reached or stopped; the text says what to do."""
