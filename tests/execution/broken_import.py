"""A handler's module that cannot be imported: its file is there, and raises."""

raise RuntimeError("the settings of this module are missing")
