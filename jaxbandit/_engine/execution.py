"""The execution plan of a game on a platform, recorded in the :class:`jaxbandit.Result`.

Bitwise identical results are guaranteed for one platform and one execution.
"""

import dataclasses
from typing import Any, Literal

Evaluation = Literal["arrays", "mapped", "unrolled"]
QueueKind = Literal["listed", "slots", "slots in turn", "dense"]
Later = Literal["", "kept", "dropped"]


@dataclasses.dataclass(frozen=True)
class Execution:
    """The execution plan of the blocks of a game: static, a part of the compiled program."""

    platform: str = ""  # "cpu", "gpu" or "tpu"; empty: any
    block: int = 0  # runs in a block; 0: all runs of the game
    # arrays: [K, ...] and [...]; mapped: one run, vmapped; unrolled: a vector of runs for each number (accelerators)
    evaluation: Evaluation = "arrays"
    queue: QueueKind = "listed"  # how outstanding observations are kept
    chunk: int = 0  # rounds in a loop of known length; 0: none
    ring: int = 0  # rows of the queue; those beyond the delay model's bound are never used; 0: as many as needed
    # A queue that ends at the horizon: whether observations that arrive later are kept, for resumed runs; "": it holds every delay
    later: Later = ""
    per_run: tuple[bool, ...] = ()  # leaves of learner, losses and delays with one value per run; (): none
    one_function: bool = False  # compiled as one function with wide vectors: see jaxbandit._engine.programs
    note: str = ""  # why it is not the fastest execution of the platform

    @property
    def one_pass(self) -> bool:
        """Whether both random words are computed in one pass over runs: see :func:`jaxbandit._core.randomness.in_one_pass`."""
        return self.platform == "cpu" and self.evaluation == "arrays"

    def about(self) -> dict[str, Any]:
        """The fields that a Result stores."""
        return {**dataclasses.asdict(self), "per_run": any(self.per_run)}
