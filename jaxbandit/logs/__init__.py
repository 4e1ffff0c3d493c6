"""Logs of live systems: who was shown what, when, and when the conversion came, if it came."""

from jaxbandit.logs.log import Log, example, load_log

__all__ = ["Log", "example", "load_log"]
