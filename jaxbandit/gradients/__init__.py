"""The gradient of the expected regret in a learner's hyperparameters, and tuning by it."""

from jaxbandit.gradients.estimators import regret_gradient
from jaxbandit.gradients.gradient import Gradient
from jaxbandit.gradients.tuned import Tuned
from jaxbandit.gradients.tuning import tune

__all__ = ["Gradient", "Tuned", "regret_gradient", "tune"]
