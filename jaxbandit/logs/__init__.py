"""Logs of live systems: actions with their times, and the times of their conversions, if any."""

from jaxbandit.logs.log import Log, example, load_log
from jaxbandit.logs.trace import load_trace

__all__ = ["Log", "example", "load_log", "load_trace"]
