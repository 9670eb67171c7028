"""The beat jobs and their schedule. Nothing imports this package; the app names it in `include`."""
