"""The declarative base: naming, column kinds, and the text of the checks that several tables share."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from typing import Annotated, Any

from sqlalchemy import BigInteger, CheckConstraint, DateTime, MetaData, Text, Uuid, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, mapped_column

from db.states import literals

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}

OFFICE_NOW = text("office_now()")

Identifier = Annotated[str, mapped_column(Text)]
Instant = Annotated[dt.datetime, mapped_column(DateTime(timezone=True))]
CreatedAt = Annotated[dt.datetime, mapped_column(DateTime(timezone=True), server_default=OFFICE_NOW)]
Json = Annotated[Any, mapped_column(JSONB)]


class Base(DeclarativeBase):
    """Every table of the office."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {str: Text, int: BigInteger, uuid.UUID: Uuid}  # noqa: RUF012 - declarative API


def one_of(column: str, values: Iterable[str]) -> CheckConstraint:
    """Return the check that `column` holds one of `values`."""
    return CheckConstraint(f"{column} IN ({literals(values)})", name=column)


def bounded_id(column: str = "id") -> CheckConstraint:
    """Return the check of ADM-8.2 on an identifier: never empty, at most 255 bytes of UTF-8."""
    return CheckConstraint(f"octet_length({column}) BETWEEN 1 AND 255", name=f"{column}_bounded")
