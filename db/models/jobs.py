"""What the recovery jobs did last, for whoever watches them."""

from __future__ import annotations

from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base, Identifier, Instant, Json


class RecoveryJob(Base):
    """One beat job: when it last succeeded, and what it did (REC-3.5)."""

    __tablename__ = "recovery_jobs"

    job: Mapped[Identifier] = mapped_column(primary_key=True)
    succeeded_at: Mapped[Instant]
    result: Mapped[Json]
