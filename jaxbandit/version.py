"""The version, where modules below the package's ``__init__`` can read it."""

__version__ = "0.2.0"
