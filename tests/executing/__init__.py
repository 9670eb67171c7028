"""Runs executed by real workers, and what becomes of them when a process, a server or a handler fails (REC-2)."""
