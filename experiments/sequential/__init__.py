"""Error rates, coverage and runs saved by ``until=``."""
