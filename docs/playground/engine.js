// The playground's simulator: the rules of jaxbandit in plain JavaScript, one run at a time, in double precision.
// One function that returns everything, so that its own text can be handed to a Web Worker, also from a file:// page.
function makeEngine() {
  const NEVER = -1, MISSING = 0.3; // share of the feedback that is missing under the delay model "missing"

  // A small generator of uniform numbers in (0, 1), seeded by whole numbers (sfc32).
  function generator(seed, run, stream = 0x9e3779b9) {
    let a = seed >>> 0, b = run >>> 0, c = stream >>> 0, counter = 1;
    function next() {
      const t = (a + b + counter) | 0;
      counter = (counter + 1) | 0;
      a = b ^ (b >>> 9);
      b = (c + (c << 3)) | 0;
      c = (c << 21) | (c >>> 11);
      c = (c + t) | 0;
      return ((t >>> 0) + 0.5) / 4294967296;
    }
    for (let i = 0; i < 16; i++) next();
    return next;
  }

  // x = argmin <L, x> - 2a Σ√x + b Σ x(log x - 1) over the simplex, written into x.
  // With y = x^(-1/2): a·y + 2b·log y = L - mu. Newton steps for every y, and for mu on log Σx, kept in their brackets.
  function hybridArgmin(L, a, b, x, warm) {
    const K = L.length;
    let least = Infinity;
    for (let i = 0; i < K; i++) least = Math.min(least, L[i]);
    const lowest = -a * Math.sqrt(K) - b * Math.log(K);
    let mu = Math.min(Math.max(warm.mu, lowest), -a);
    for (let step = 0; step < 200; step++) {
      let sum = 0, slope = 0, moved = 0;
      for (let i = 0; i < K; i++) {
        const z = L[i] - least - mu;
        let y = z / a;
        if (b > 0) {
          const top = Math.min(y, Math.exp(Math.min(z / (2 * b), 300)));
          const old = Math.min(Math.max(warm.y[i], 1), top);
          y = Math.min(Math.max(old * (z - 2 * b * (Math.log(old) - 1)) / (a * old + 2 * b), 1), top);
          moved = Math.max(moved, Math.abs(y - warm.y[i]) / y);
        }
        warm.y[i] = y;
        x[i] = 1 / (y * y);
        sum += x[i];
        slope += 2 * x[i] / (a * y + 2 * b);
      }
      if (Math.abs(sum - 1) < 1e-10 && moved < 1e-9) break;
      mu = Math.min(Math.max(mu - sum * Math.log(sum) / slope, lowest), -a);
    }
    warm.mu = mu;
    let sum = 0;
    for (let i = 0; i < K; i++) sum += x[i];
    for (let i = 0; i < K; i++) x[i] /= sum;
  }

  // FTRL: the state is the sum of importance-weighted losses; rates(t, waited) gives the inverse rates [1/eta, 1/gamma].
  function leader(K, rates) {
    const L = new Float64Array(K), warm = { y: new Float64Array(K).fill(Math.sqrt(K)), mu: -Infinity };
    return {
      act(t, waited, x) {
        const [a, b] = rates(t, waited);
        hybridArgmin(L, a, b, x, warm);
      },
      observe(arm, loss, probability) { L[arm] += loss / probability; },
    };
  }

  function bestOfBothWorlds(K, maxDelay, linear, factor) {
    const logK = Math.log(K);
    const eta0 = linear * maxDelay + (maxDelay / (Math.cbrt(K) * logK)) ** 2;
    const gamma0 = (factor * maxDelay) ** 2 * Math.cbrt(K) ** 2 * logK;
    return leader(K, (t, waited) => [Math.sqrt(t + eta0), Math.sqrt((waited + gamma0) / logK)]);
  }

  function delayedExp3(K) {
    const L = new Float64Array(K);
    return {
      act(t, waited, x) {
        const rate = Math.sqrt(Math.log(K) / (K * t / 2 + waited)), least = Math.min(...L);
        let sum = 0;
        for (let i = 0; i < K; i++) sum += x[i] = Math.exp(-rate * (L[i] - least));
        for (let i = 0; i < K; i++) x[i] /= sum;
      },
      observe(arm, loss, probability) { L[arm] += loss / probability; },
    };
  }

  // Algorithms that choose the arm with the smallest index, ties at random; index(i, t) is that of arm i.
  function smallestOf(K, index) {
    const counts = new Float64Array(K), losses = new Float64Array(K);
    return {
      act(t, waited, x) {
        let least = Infinity, ties = 0;
        for (let i = 0; i < K; i++) {
          x[i] = index(counts[i], losses[i], t);
          if (x[i] < least) { least = x[i]; ties = 1; } else if (x[i] === least) ties++;
        }
        for (let i = 0; i < K; i++) x[i] = x[i] === least ? 1 / ties : 0;
      },
      observe(arm, loss) { counts[arm]++; losses[arm] += loss; },
    };
  }

  // Gamma(shape), shape >= 1 (Marsaglia & Tsang 2000), with normal numbers by Box & Muller.
  function gamma(shape, random) {
    const d = shape - 1 / 3;
    for (;;) {
      const n = Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
      const v = (1 + n / Math.sqrt(9 * d)) ** 3;
      if (v > 0 && Math.log(random()) < n * n / 2 + d * (1 - v + Math.log(v))) return d * v;
    }
  }

  const LEARNERS = {
    "bobw": (s) => bestOfBothWorlds(s.K, longest(s), 10, 24),
    "bobw-1-1": (s) => bestOfBothWorlds(s.K, longest(s), 1, 1),
    "zimmert-seldin": (s) => leader(s.K, (t, waited) => [Math.sqrt(t), Math.sqrt(2 * waited / Math.log(s.K))]),
    "delayed-exp3": (s) => delayedExp3(s.K),
    "tsallis-inf": (s) => leader(s.K, (t) => [Math.sqrt(t), 0]),
    "ucb1": (s) => smallestOf(s.K, (n, losses, t) => (n ? losses / n - Math.sqrt(2 * Math.log(t) / n) : -Infinity)),
    "thompson": (s, random) => smallestOf(s.K, (n, losses) => gamma(1 + losses, random) / gamma(1 + n - losses, random)),
    "uniform": () => ({ act(t, waited, x) { x.fill(1 / x.length); }, observe() {} }),
  };

  // The largest delay, which MZS22 requires. Geometric delays above it are infinite: their feedback is missing.
  function longest(s) { return s.law === "geometric" ? 8 * s.delay : s.delay; }

  function delayOf(s, u) {
    if (s.law === "missing") return u < 1 - MISSING ? s.delay : NEVER;
    if (s.law === "fixed" || s.delay === 0) return s.delay;
    const d = Math.floor(-Math.log1p(-u) / Math.log1p(1 / s.delay));
    return d <= longest(s) ? d : NEVER;
  }

  // Rounds before phase n of the stochastically constrained adversary: (g^n - 1)/(g - 1), rounded up; g = 1.6 in single precision.
  const phases = [0];
  for (let sum = 1; sum < 1e7; sum = 1 + sum * Math.fround(1.6)) phases.push(Math.ceil(sum));

  // Loss models: each returns a function that writes the expected losses of round t into m.
  const LOSSES = {
    stochastic: (s) => (t, m) => { m.fill((1 + s.gap) / 2); m[0] = (1 - s.gap) / 2; },
    constrained(s) {
      let phase = 0;
      return (t, m) => {
        while (t - 1 >= phases[phase + 1]) phase++;
        const best = phase % 2 ? 1 - s.gap : 0;
        m.fill(best + s.gap);
        m[0] = best;
      };
    },
    switching: (s) => (t, m) => { // the best arm alternates every 2d rounds; arms from the third on have mean 0.9
      const best = Math.floor((t - 1) / (2 * Math.max(1, s.delay))) % 2;
      m.fill(0.9);
      m[best] = 0;
      m[1 - best] = 1;
    },
    means: (s) => (t, m) => m.set(s.means),
    drawn: (s) => (t, m) => { m.fill(1); m[s.good[t - 1]] = 0; }, // the good arm of each round
  };

  function recorded(rounds, points = 80) {
    const all = new Set();
    for (let i = 1; i <= points; i++) {
      all.add(Math.max(1, Math.round(rounds * i / points)));
      all.add(Math.round(rounds ** (i / points)));
    }
    return [...all].sort((p, q) => p - q);
  }

  // One run, round by round. After step(): the round t, its probabilities x, arm, loss, delay, `outstanding` (σ_t, at the start of the
  // round), `arrived` (rounds whose feedback arrived at its end), and `regret`, the pseudo-regret with x_t in place of the sampled arm.
  // choose(t), if given, picks the arm in place of the algorithm; x is then its indicator.
  function game(s, id, index, choose = null) {
    const { K, rounds } = s, random = generator(s.seed, index);
    const learner = choose ? null : LEARNERS[id](s, generator(s.seed, index, 0x7f4a7c15));
    const arms = new Int32Array(rounds + 1), losses = new Float64Array(rounds + 1), chances = new Float64Array(rounds + 1);
    const head = new Int32Array(rounds + 2), link = new Int32Array(rounds + 1); // actions by round of arrival
    const m = new Float64Array(K), sums = new Float64Array(K), expected = LOSSES[s.losses](s);
    let waited = 0, total = 0, open = 0;
    const now = { t: 0, x: new Float64Array(K), arm: 0, loss: 0, delay: 0, outstanding: 0, arrived: [] };
    now.regret = () => total - Math.min(...sums);
    now.step = () => {
      const t = ++now.t, x = now.x;
      now.outstanding = open;
      waited += open;
      if (choose) { x.fill(0); x[choose(t)] = 1; } else learner.act(t, waited, x);
      expected(t, m);
      for (let i = 0; i < K; i++) { total += x[i] * m[i]; sums[i] += m[i]; }
      const u = random(), hit = random();
      now.delay = delayOf(s, random());
      let i = 0, below = x[0];
      while (u >= below && i < K - 1) below += x[++i];
      while (x[i] === 0 && i > 0) i--; // rounding of the sum
      now.arm = arms[t] = i;
      now.loss = losses[t] = hit < m[i] ? 1 : 0;
      chances[t] = x[i];
      open++;
      if (now.delay !== NEVER && t + now.delay <= rounds) { link[t] = head[t + now.delay]; head[t + now.delay] = t; }
      now.arrived.length = 0;
      for (let play = head[t]; play > 0; play = link[play]) {
        open--;
        now.arrived.push(play);
        if (!choose) learner.observe(arms[play], losses[play], chances[play]);
      }
    };
    return now;
  }

  // Pseudo-regret of one run at the recorded rounds, against the best arm in hindsight.
  function run(s, id, index, record) {
    const one = game(s, id, index), regret = new Float64Array(record.length);
    for (let next = 0; next < record.length; next++) {
      while (one.t < record[next]) one.step();
      regret[next] = one.regret();
    }
    return regret;
  }

  return { NEVER, MISSING, generator, LEARNERS, LOSSES, recorded, game, run, hybridArgmin, longest };
}
if (typeof module !== "undefined") module.exports = makeEngine;
