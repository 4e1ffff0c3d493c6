"""What a result depends on: the users' code, the package's code, and the environment."""
