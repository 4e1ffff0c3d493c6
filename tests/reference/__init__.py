"""Plain float64 NumPy reference learners: the oracle of the test-suite."""
