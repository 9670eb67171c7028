"""What is wrong with an installation, and what to do about it: `examine` runs every check (OPS-1.4)."""

from office_tasks.doctor.examine import examine, pulse
from office_tasks.doctor.finding import Finding, Level

__all__ = ["Finding", "Level", "examine", "pulse"]
