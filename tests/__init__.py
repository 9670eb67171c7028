"""The tests: unit, integration with real servers and workers, and the nodes those run on."""
