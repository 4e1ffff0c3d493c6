"""Follow the regularised leader: the projection (section 1) and the learners of sections 2-5, 8 and 9."""

from __future__ import annotations

import math

import numpy as np

from .interface import Reference


def bracketed_root(function, low: float, high: float) -> float:
    """Root of an increasing function with function(low) <= 0 <= function(high): Ridders' method.

    The root stays bracketed, the bracket at least halves per step; ends at neighbouring floats or a repeated guess.
    """
    at_low, at_high = function(low), function(high)
    if at_low >= 0.0:
        return low
    if at_high <= 0.0:
        return high
    previous = math.inf
    for _ in range(300):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return middle
        at_middle = function(middle)
        shift = (middle - low) * at_middle / math.sqrt(at_middle * at_middle - at_low * at_high)
        guess = min(max(middle - shift, low), high)
        at_guess = function(guess)
        if at_guess == 0.0 or abs(guess - previous) <= 2.0**-52 * abs(guess):
            return guess
        previous = guess
        for point, value in ((middle, at_middle), (guess, at_guess)):
            if low < point < high:
                if value < 0.0:
                    low, at_low = point, value
                elif value > 0.0:
                    high, at_high = point, value
                else:
                    return point
    raise ArithmeticError("no convergence")


def project(loss_estimates, a: float, b=0.0) -> np.ndarray:
    """Section 1: argmin over the simplex of <L, x> - 2 a sum sqrt(x_i) + sum b_i x_i (log x_i - 1).

    With u_i = -log(x_i)/2 the optimality condition is a e^{u_i} + 2 b_i u_i = L_i - mu. For each mu every u_i is found
    inside a bracket (the left side increases in u); mu itself is found inside [-a sqrt K - max b log K, -a] (min L = 0)
    by the same bracketing. Needs a > 0 (b = 0 allowed, scalar or vector) or all b > 0.
    """
    losses = np.asarray(loss_estimates, dtype=float)
    arms = len(losses)
    if arms == 1:
        return np.ones(1)
    losses = [float(v) for v in losses - losses.min()]
    rates = [float(v) for v in np.broadcast_to(np.asarray(b, dtype=float), (arms,))]

    def log_inverse_root(z: float, rate: float) -> float:  # u >= 0 with a e^u + 2 rate u = z
        if z <= a:
            return 0.0
        if rate == 0.0:
            return math.log(z / a)
        if a == 0.0:
            return z / (2.0 * rate)
        highest = min(math.log(z / a), z / (2.0 * rate))
        return bracketed_root(lambda u: a * math.exp(u) + 2.0 * rate * u - z, 0.0, highest)

    def solution(mu: float) -> list[float]:
        return [math.exp(-2.0 * log_inverse_root(loss - mu, rate)) for loss, rate in zip(losses, rates)]

    lowest = -a * math.sqrt(arms) - max(rates) * math.log(arms)
    mu = bracketed_root(lambda value: math.log(math.fsum(solution(value))), lowest, -a)
    x = np.array(solution(mu))
    assert abs(x.sum() - 1.0) < 1e-9, (x.sum(), a, b)
    return x / x.sum()


class TsallisINF(Reference):
    """Section 5. a = scale sqrt(t) ('iw') or scale sqrt(t)/2 ('rv'), b = 0; feedback counts when it arrives.

    iw: l/x on the played arm. rv: every arm i gets 1{I = i} (l - B_i)/x_i + B_i with B_i = 1/2 if x_i >= threshold/s,
    else 0; x and s are those of the play.
    """

    def __init__(self, arms, estimator: str = "iw", threshold: float = 16.0, scale: float = 1.0):
        super().__init__(arms)
        self.estimator, self.threshold, self.scale = estimator, threshold, scale
        self.loss_estimates = np.zeros(arms)

    def act(self, t, outstanding):
        a = self.scale * math.sqrt(t) * (0.5 if self.estimator == "rv" else 1.0)
        return self.remember(t, project(self.loss_estimates, a))

    def observe(self, t, s, arm, loss):
        if self.estimator == "iw":
            self.loss_estimates += self.importance_weighted(s, arm, loss)
            return
        for i in range(self.arms):
            x = self.probabilities[s][i]
            baseline = 0.5 if x >= self.threshold / s else 0.0
            self.loss_estimates[i] += baseline + ((loss - baseline) / x if i == arm else 0.0)


class BestOfBothWorlds(Reference):
    """Section 2 (MZS22, Algorithm 1): a = eta_scale sqrt(t + eta0), b = gamma_scale sqrt((D_t + gamma0)/log K).

    D_t = sum_{s <= t} sigma_s, eta0 = linear dmax + dmax^2/(K^{1/3} log K)^2, gamma0 = factor^2 dmax^2 K^{2/3} log K.
    """

    def __init__(self, arms, max_delay, linear=10.0, factor=24.0, eta_scale=1.0, gamma_scale=1.0):
        super().__init__(arms)
        self.eta_scale, self.gamma_scale = eta_scale, gamma_scale
        self.total = 0  # D_t
        self.loss_estimates = np.zeros(arms)
        if arms > 1:
            self.eta0 = linear * max_delay + max_delay**2 / (arms ** (1 / 3) * self.log_arms) ** 2
            self.gamma0 = factor**2 * max_delay**2 * arms ** (2 / 3) * self.log_arms

    def inverse_rates(self, t):
        a = self.eta_scale * math.sqrt(t + self.eta0)
        return a, self.gamma_scale * math.sqrt((self.total + self.gamma0) / self.log_arms)

    def act(self, t, outstanding):
        self.total += len(outstanding)
        if self.arms == 1:
            return self.remember(t, np.ones(1))
        return self.remember(t, project(self.loss_estimates, *self.inverse_rates(t)))

    def observe(self, t, s, arm, loss):
        self.loss_estimates += self.importance_weighted(s, arm, loss)


class TaperedFTRL(Reference):
    """a = 1.2 kappa sqrt(t) w^p, b = kappa sqrt(D_t/log K) w^p with w = (T' - t + 1)/T' and T' = T, 2T, 4T, ..., the first >= t."""

    def __init__(self, arms, horizon, robustness=0.5, power=0.5, tsallis_scale=1.2):
        super().__init__(arms)
        self.horizon, self.robustness, self.power, self.tsallis_scale = horizon, robustness, power, tsallis_scale
        self.total = 0
        self.loss_estimates = np.zeros(arms)

    def act(self, t, outstanding):
        self.total += len(outstanding)
        if self.arms == 1:
            return self.remember(t, np.ones(1))
        horizon = self.horizon
        while horizon < t:
            horizon *= 2
        scale = self.robustness * (max(horizon - t + 1, 1) / horizon) ** self.power
        a = scale * self.tsallis_scale * math.sqrt(t)
        return self.remember(t, project(self.loss_estimates, a, scale * math.sqrt(self.total / self.log_arms)))

    def observe(self, t, s, arm, loss):
        self.loss_estimates += self.importance_weighted(s, arm, loss)


class AsymmetricBestOfBothWorlds(BestOfBothWorlds):
    """Section 9: MZS22 with b_i = b sqrt(max(Delta_i, floor)).

    gaps: vector of true gaps, or None for Delta_i = m_i - min_j m_j with m the mean of the plain losses observed so far
    (minimum over observed arms). Reading: an arm without observations has Delta_i = 1, i.e. the symmetric b.

    Taken literally, b_i x_i (log x_i - 1) with unequal b_i is not smallest at the uniform point: before any feedback
    the arms with *small* b_i (the good ones) get the small probabilities. centred = True adds b_i log K to L_i, which
    is the regulariser b_i x_i (log(K x_i) - 1): uniform play before any feedback. Default False, the literal reading.
    """

    def __init__(self, arms, max_delay, gaps=None, floor: float = 0.01, centred: bool = False, **rates):
        super().__init__(arms, max_delay, **rates)
        self.true_gaps, self.floor, self.centred = gaps, floor, centred
        self.counts, self.sums = np.zeros(arms), np.zeros(arms)

    def gaps(self):
        if self.true_gaps is not None:
            return np.asarray(self.true_gaps, dtype=float)
        means = [self.sums[i] / self.counts[i] if self.counts[i] else None for i in range(self.arms)]
        best = min((m for m in means if m is not None), default=0.0)
        return np.array([1.0 if m is None else m - best for m in means])

    def inverse_rates(self, t):
        a, b = super().inverse_rates(t)
        return a, b * np.sqrt(np.maximum(self.gaps(), self.floor))

    def act(self, t, outstanding):
        self.total += len(outstanding)
        if self.arms == 1:
            return self.remember(t, np.ones(1))
        a, b = self.inverse_rates(t)
        offset = b * self.log_arms if self.centred else 0.0
        return self.remember(t, project(self.loss_estimates + offset, a, b))

    def observe(self, t, s, arm, loss):
        super().observe(t, s, arm, loss)
        self.counts[arm] += 1
        self.sums[arm] += loss


class ZimmertSeldin(Reference):
    """Section 3 (ZS20). a = sqrt(t). Simple: b = sqrt(2 D_t/log K), D_t = sum_{s <= t} sigma_s.

    Skipping: sigma counts only active plays, b = sqrt(D_t/log K); then every active s with min(d_s, t - s) > b stops
    counting from round t + 1 on. Only outstanding plays matter, for which min(d_s, t - s) = t - s. Its feedback is
    still used when it arrives.
    """

    def __init__(self, arms, skipping: bool = False, tsallis_scale: float = 1.0, entropy_scale: float = 1.0):
        super().__init__(arms)
        self.skipping, self.tsallis_scale, self.entropy_scale = skipping, tsallis_scale, entropy_scale
        self.total = 0
        self.inactive: set[int] = set()
        self.loss_estimates = np.zeros(arms)

    def act(self, t, outstanding):
        active = [s for s in outstanding if s not in self.inactive]
        self.total += len(active)
        if self.arms == 1:
            return self.remember(t, np.ones(1))
        b = self.entropy_scale * math.sqrt((1.0 if self.skipping else 2.0) * self.total / self.log_arms)
        if self.skipping:
            self.inactive.update(s for s in active if t - s > b)
        return self.remember(t, project(self.loss_estimates, self.tsallis_scale * math.sqrt(t), b))

    def observe(self, t, s, arm, loss):
        self.loss_estimates += self.importance_weighted(s, arm, loss)


class RobustBestOfBothWorlds(Reference):
    """Section 4 (MZS24). Start of t: D_t += #{outstanding, not skipped}; a = sqrt(t), b = sqrt(factor D_t/log K).

    Arrival of a play s that was not skipped: l / max(x_{s,I_s}, exp(-D_t/(D_t - D_s))), the exponential being 0 if
    D_t = D_s. Then every outstanding s (s + d_s > t) with t - s > sqrt(D_t/(factor K^{2/3} log K)) is skipped: it no
    longer counts and its feedback is thrown away.
    """

    def __init__(self, arms, factor: float = 49.0, tsallis_scale: float = 1.0, entropy_scale: float = 1.0):
        super().__init__(arms)
        self.factor, self.tsallis_scale, self.entropy_scale = factor, tsallis_scale, entropy_scale
        self.total = 0
        self.total_at: dict[int, int] = {}  # round -> D_t
        self.skipped: set[int] = set()
        self.loss_estimates = np.zeros(arms)

    def act(self, t, outstanding):
        self.total += sum(s not in self.skipped for s in outstanding)
        self.total_at[t] = self.total
        if self.arms == 1:
            return self.remember(t, np.ones(1))
        b = self.entropy_scale * math.sqrt(self.factor * self.total / self.log_arms)
        return self.remember(t, project(self.loss_estimates, self.tsallis_scale * math.sqrt(t), b))

    def observe(self, t, s, arm, loss):
        if s in self.skipped:
            return
        waited = self.total_at[t] - self.total_at[s]
        floor = math.exp(-self.total_at[t] / waited) if waited > 0 else 0.0
        self.loss_estimates[arm] += loss / max(self.probabilities[s][arm], floor)

    def end(self, t, outstanding):
        if self.arms == 1:
            return
        threshold = math.sqrt(self.total / (self.factor * self.arms ** (2 / 3) * self.log_arms))
        self.skipped.update(s for s in outstanding if t - s > threshold)


class ArmDependentFTRL(Reference):
    """Section 8 (van der Hoeven & Cesa-Bianchi 2022, the bandit learner without extra observations).

    a = sqrt(t), b = 1/gamma_t = sqrt((max_missing sqrt(t) + M_t)/log K); on arrival l / q_s on the played arm,
    q_s = x_{s,I_s} + 1/sqrt(s) with x and s of the play. M_t = sum over own plays r < t of the sum of 1/q_{s'} over the
    earlier plays s' < r of the same arm, I_{s'} = I_r, that are still missing at the start of round r.

    Readings: q is the denominator of the loss estimator (so 1/q_{s'} <= sqrt(t), and max_missing sqrt(t) pays for the
    round-t term that is not known before I_t is drawn; hence the sum over r < t). ``max_missing`` is the oracle rho*.
    """

    def __init__(self, arms, max_missing: float, tsallis_scale: float = 1.0, entropy_scale: float = 1.0):
        super().__init__(arms)
        self.max_missing, self.tsallis_scale, self.entropy_scale = max_missing, tsallis_scale, entropy_scale
        self.missing_weight = 0.0  # M_t
        self.outstanding: list[int] = []
        self.loss_estimates = np.zeros(arms)

    def denominator(self, s: int) -> float:
        return self.probabilities[s][self.played_arm[s]] + 1.0 / math.sqrt(s)

    def act(self, t, outstanding):
        self.outstanding = list(outstanding)
        if self.arms == 1:
            return self.remember(t, np.ones(1))
        b = self.entropy_scale * math.sqrt((self.max_missing * math.sqrt(t) + self.missing_weight) / self.log_arms)
        return self.remember(t, project(self.loss_estimates, self.tsallis_scale * math.sqrt(t), b))

    def played(self, t, arm):
        super().played(t, arm)
        self.missing_weight += sum(1.0 / self.denominator(s) for s in self.outstanding if self.played_arm[s] == arm)

    def observe(self, t, s, arm, loss):
        self.loss_estimates[arm] += loss / self.denominator(s)


class BankerTsallisINF(Reference):
    """Section 8 (Huang, Dai & Huang 2023), Banker-OMD with Psi(x) = -2 sum sqrt(x_i), whose gradient is -x^{-1/2}.

    Scale of round t: c_t = 1/(1/sqrt(t) + sigma_t sqrt(log(D_t + 1)/D_t)), D_t = sum_{s <= t} sigma_s (second term 0 if
    sigma_t = 0). Spend c_t greedily on the savings v_s of arrived plays: beta_s = min(v_s, what is left),
    v_s -= beta_s; invest the rest r in the uniform point:
        -grad Psi(x_t) = (r sqrt(K) 1 + sum_s beta_s z_s^{-1/2})/c_t + const.
    When the feedback of s arrives, a mirror step of scale c_s: z_s^{-1/2} = x_s^{-1/2} + lhat_s/c_s + const, v_s = c_s.
    Without delays this is Tsallis-INF (iw). Constants do not matter: every z is used only through the next projection.

    Reading: the paper's guarantee allows any greedy order [M]. order = 'oldest' (default) spends the smallest s first,
    'newest' the largest s first, 'proportional' takes the same fraction min(1, c_t/sum v) of every saving.
    """

    def __init__(self, arms, order: str = "oldest", scale: float = 1.0, delay_scale: float = 1.0):
        super().__init__(arms)
        self.order, self.multiplier, self.delay_scale = order, scale, delay_scale  # of c_t, and of its term of sigma_t
        self.total = 0
        self.scale: dict[int, float] = {}  # c_s
        self.savings: dict[int, float] = {}  # v_s, arrived plays with something left
        self.duals: dict[int, np.ndarray] = {}  # z_s^{-1/2}

    def act(self, t, outstanding):
        sigma = len(outstanding)
        self.total += sigma
        waiting = sigma * math.sqrt(math.log(self.total + 1) / self.total) if sigma else 0.0
        self.scale[t] = self.multiplier / (1.0 / math.sqrt(t) + self.delay_scale * waiting)
        rest, dual = self.scale[t], np.zeros(self.arms)
        fraction = min(1.0, rest / sum(self.savings.values())) if self.savings else 0.0
        for s in sorted(self.savings, reverse=self.order == "newest"):
            spent = fraction * self.savings[s] if self.order == "proportional" else min(self.savings[s], rest)
            dual += spent * self.duals[s]
            self.savings[s] -= spent
            rest = max(rest - spent, 0.0)
            if self.savings[s] <= 0.0:
                del self.savings[s], self.duals[s]
        dual += rest * math.sqrt(self.arms)
        return self.remember(t, project(dual / self.scale[t], 1.0))

    def observe(self, t, s, arm, loss):
        x = self.probabilities[s]
        z = project(x**-0.5 + self.importance_weighted(s, arm, loss) / self.scale[s], 1.0)
        self.savings[s], self.duals[s] = self.scale[s], z**-0.5
