"""Reference learners for bandits with delayed feedback: one run, float64, plain loops.

Written from the specification (``algorithms.md``, sections 0-9) and independent of the implementation under test.
Rounds count from 1, arms from 0, losses lie in [0, 1] and small is good. Feedback of round s arrives at the *end* of
round s + d_s. [M] marks a rule recalled rather than read in the source paper.
"""

from .exponential import (  # noqa: F401
    DelayedExp3,
    DelayedExponentialWeights,
    Exp3,
    Exp3PlusPlus,
    FixedDelayExp3,
    Skipper,
)
from .ftrl import (  # noqa: F401
    ArmDependentFTRL,
    AsymmetricBestOfBothWorlds,
    BankerTsallisINF,
    BestOfBothWorlds,
    RobustBestOfBothWorlds,
    TaperedFTRL,
    TsallisINF,
    ZimmertSeldin,
    project,
)
from .interface import Reference, draw, play  # noqa: F401
from .late import CoLo, LimitedTracking, StateExp3  # noqa: F401
from .odaaf import ODAAF  # noqa: F401
from .sapo import DelayedSAPO  # noqa: F401
from .shapes import (  # noqa: F401
    CensoredKLUCB,
    CensoredThompson,
    DelayedKLUCB,
    DelayedUCB,
    DiscountedThompson,
    DiscountedUCB,
    OptimisticPessimisticElimination,
    SlidingWindowThompson,
    SlidingWindowUCB,
)
from .stochastic import (  # noqa: F401
    KLUCB,
    DelayedThompson,
    DelayedUCB1,
    PhasedElimination,
    SuccessiveElimination,
    smallest_beta_probabilities,
)
from .wrappers import BOLD, QPMD  # noqa: F401
