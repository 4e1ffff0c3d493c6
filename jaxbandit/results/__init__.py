"""Results of simulations and their statistics."""
