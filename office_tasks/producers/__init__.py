"""The producers: each turns one occurrence into the wakes that it justifies."""
