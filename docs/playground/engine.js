// The playground's simulator: the rules of jaxbandit in plain JavaScript, one run at a time, in double precision.
// A function that returns everything, so that its own text can be handed to a Web Worker, also from a file:// page.
function makeEngine() {
  const NEVER = -1;

  // A small generator of uniform numbers in (0, 1), seeded by whole numbers (sfc32).
  function generator(seed, run) {
    let a = seed >>> 0, b = run >>> 0, c = 0x9e3779b9, counter = 1;
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

  // Learners whose state is the sum of the weighted losses; rates(t, waited) gives the inverse rates [1/eta, 1/gamma].
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

  function best(K, maxDelay, linear, factor) {
    const logK = Math.log(K);
    const eta0 = linear * maxDelay + (maxDelay / (Math.cbrt(K) * logK)) ** 2;
    const gamma0 = (factor * maxDelay) ** 2 * Math.cbrt(K) ** 2 * logK;
    return leader(K, (t, waited) => [Math.sqrt(t + eta0), Math.sqrt((waited + gamma0) / logK)]);
  }

  const LEARNERS = {
    paper: { name: "paper’s learner (10, 24)", make: (s) => best(s.K, s.maxDelay, 10, 24) },
    lowered: { name: "paper’s rule, constants 1, 1", make: (s) => best(s.K, s.maxDelay, 1, 1) },
    zs20: { name: "ZS20", make: (s) => leader(s.K, (t, waited) => [Math.sqrt(t), Math.sqrt(2 * waited / Math.log(s.K))]) },
    exp3: {
      name: "delayed Exp3",
      make(s) {
        const L = new Float64Array(s.K);
        return {
          act(t, waited, x) {
            const rate = Math.sqrt(Math.log(s.K) / (s.K * t / 2 + waited)), least = Math.min(...L);
            let sum = 0;
            for (let i = 0; i < s.K; i++) sum += x[i] = Math.exp(-rate * (L[i] - least));
            for (let i = 0; i < s.K; i++) x[i] /= sum;
          },
          observe(arm, loss, probability) { L[arm] += loss / probability; },
        };
      },
    },
    tsallis: { name: "Tsallis-INF (ignores delay)", make: (s) => leader(s.K, (t) => [Math.sqrt(t), 0]) },
    ucb1: {
      name: "delayed UCB1",
      make(s) {
        const counts = new Float64Array(s.K), losses = new Float64Array(s.K);
        return {
          act(t, waited, x) {
            let least = Infinity, ties = 0;
            for (let i = 0; i < s.K; i++) {
              x[i] = counts[i] ? losses[i] / counts[i] - Math.sqrt(2 * Math.log(t) / counts[i]) : -Infinity;
              if (x[i] < least) { least = x[i]; ties = 1; } else if (x[i] === least) ties++;
            }
            for (let i = 0; i < s.K; i++) x[i] = x[i] === least ? 1 / ties : 0;
          },
          observe(arm, loss) { counts[arm]++; losses[arm] += loss; },
        };
      },
    },
    uniform: { name: "uniform play", make: () => ({ act(t, waited, x) { x.fill(1 / x.length); }, observe() {} }) },
  };

  // What the learners are told, and where geometric delays are cut off: later feedback never comes.
  const longest = (s) => (s.law === "fixed" ? s.delay : 8 * s.delay);

  function delayOf(s, u) {
    if (s.law === "fixed" || s.delay === 0) return s.delay;
    const d = Math.floor(-Math.log1p(-u) / Math.log1p(1 / s.delay));
    return d <= longest(s) ? d : NEVER;
  }

  function recorded(rounds, points = 80) {
    const all = new Set();
    for (let i = 1; i <= points; i++) {
      all.add(Math.max(1, Math.round(rounds * i / points)));
      all.add(Math.round(rounds ** (i / points)));
    }
    return [...all].sort((p, q) => p - q);
  }

  // Expected losses of round t. Stochastic: arm 0 is better than all others by the gap. Adversarial: two arms take turns every
  // 2d rounds, so that what has been seen is half a period behind; the others are bad always.
  function means(s, t, m) {
    if (s.losses === "adversarial") {
      const phase = Math.floor((t - 1) / (2 * Math.max(1, s.delay))) % 2;
      m.fill(0.9);
      m[phase] = 0;
      m[1 - phase] = 1;
    } else {
      m.fill((1 + s.gap) / 2);
      m[0] = (1 - s.gap) / 2;
    }
  }

  // Pseudo-regret of one run at the recorded rounds: x_t in place of the sampled arm, against the best arm in hindsight.
  function run(s, learnerId, index, record) {
    const { K, rounds } = s, random = generator(s.seed, index);
    const learner = LEARNERS[learnerId].make({ ...s, maxDelay: longest(s) });
    const arm = new Int32Array(rounds + 1), loss = new Float64Array(rounds + 1), probability = new Float64Array(rounds + 1);
    const head = new Int32Array(rounds + 2), link = new Int32Array(rounds + 1); // plays by round of arrival
    const x = new Float64Array(K), m = new Float64Array(K), sums = new Float64Array(K), regret = new Float64Array(record.length);
    let outstanding = 0, waited = 0, total = 0, next = 0;
    for (let t = 1; t <= rounds; t++) {
      waited += outstanding;
      learner.act(t, waited, x);
      means(s, t, m);
      for (let i = 0; i < K; i++) { total += x[i] * m[i]; sums[i] += m[i]; }
      const u = random(), hit = random(), late = delayOf(s, random());
      let i = 0, below = x[0];
      while (u >= below && i < K - 1) below += x[++i];
      arm[t] = i;
      loss[t] = hit < m[i] ? 1 : 0;
      probability[t] = x[i];
      outstanding++;
      if (late !== NEVER && t + late <= rounds) { link[t] = head[t + late]; head[t + late] = t; }
      for (let play = head[t]; play > 0; play = link[play]) {
        outstanding--;
        learner.observe(arm[play], loss[play], probability[play]);
      }
      if (t === record[next]) regret[next++] = total - Math.min(...sums);
    }
    return regret;
  }

  return { LEARNERS, recorded, run, hybridArgmin, longest };
}
if (typeof module !== "undefined") module.exports = makeEngine;
