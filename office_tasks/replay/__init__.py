"""`office replay`: a recorded history of assignments, run through the same admission as live ones (OPS-1.5)."""
