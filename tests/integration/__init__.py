"""Tests with real workers, Redis and Postgres: what a caller sees, and what is left after a death."""
