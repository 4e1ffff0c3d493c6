"""Checks of what users pass in: values, classes of their own, and combinations that deserve a warning."""
