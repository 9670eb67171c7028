"""The rules of admission, each against a real Postgres, with the instant injected."""
