"""The statements of the paper and of follow-up questions, one folder each; ``harness`` runs them."""
