"""Stochastic regret against the largest regret that a search finds: the price of robustness."""
