"""The life of a run after its admission: claimed, executed by the user's handler, ended once (REC-2)."""
