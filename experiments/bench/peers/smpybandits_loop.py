"""Rounds per second of SMPyBandits' learners, K = 10, without delay: run by the Python of an environment that has it.

    pip install SMPyBandits 'numpy<2' 'scipy<1.14' 'pandas<3' 'matplotlib<3.10' 'scikit-learn<1.6'

Prints one line of JSON: our name of the learner -> rounds per second.
"""

import contextlib
import io
import json
import random
import time

with contextlib.redirect_stdout(io.StringIO()):
    from SMPyBandits.Policies import UCB, Exp3, Thompson, TsallisInf, klUCB

MEANS = [0.7] + [0.5] * 9  # rewards
ROUNDS = 3_000


def speed(policy) -> float:
    policy.startGame()
    start = time.perf_counter()
    for _ in range(ROUNDS):
        arm = policy.choice()
        policy.getReward(arm, float(random.random() < MEANS[arm]))
    return ROUNDS / (time.perf_counter() - start)


with contextlib.redirect_stdout(io.StringIO()):
    speeds = {
        "ucb1": speed(UCB(10)),
        "kl-ucb": speed(klUCB(10)),
        "thompson": speed(Thompson(10)),
        "exp3": speed(Exp3(10)),
        "tsallis-inf": speed(TsallisInf(10)),
    }
print(json.dumps(speeds))
