"""The provenance of a result: the users' code, the package's code, and the environment."""
