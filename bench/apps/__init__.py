"""What the workers of the benchmarks load: our app with a no-op beside it, a bare Celery, a handler that tells."""
