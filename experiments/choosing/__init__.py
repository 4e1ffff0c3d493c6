"""Comparison of learners over delay and horizon."""
