"""Strictness for every test: no silent rank promotion, and each test worker uses the CPU alone."""

import os

os.environ.setdefault("PJRT_NPROC", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
