"""Delayed SAPO, statement by statement."""
