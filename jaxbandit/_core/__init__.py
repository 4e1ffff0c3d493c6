"""Building blocks that know nothing of bandit problems' solutions: fields, arms, randomness, sums, rings, the projection."""
