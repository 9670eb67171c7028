"""A row as it lies in its table, and what was written about a run."""

from __future__ import annotations


def row_of(board, table, row_id):
    """Return every column of a row as text, with the transaction that wrote it: equal only if nobody wrote it since."""
    query = f"SELECT CAST({table}.* AS text) AS row, CAST(xmin AS text) AS writer FROM {table} WHERE id = :id"
    return board.rows(query, id=row_id)[0]


def state_of(board, run_id):
    row = board.run(run_id)
    return row["status"], row["cancel_reason"]


def is_quiet(run):
    """Tell whether a run is held by nobody."""
    return (run["lease_token"], run["lease_expires_at"]) == (None, None)
