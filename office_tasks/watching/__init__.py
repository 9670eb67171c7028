"""What we add to Flower: a lock on every door, and a page of the office's own (OPS-1.1)."""
