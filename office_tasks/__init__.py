"""Office Tasks: who may be woken, decided once, in Postgres."""
