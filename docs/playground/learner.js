// "You are the learner": sixty actions, feedback delayed by ten rounds, against three algorithms on the same environment.
"use strict";
const HAND = { K: 4, rounds: 60, delay: 10, law: "fixed", losses: "means" }, RIVALS = ["tsallis-inf", "ucb1", "thompson"];
const MEANS = [0.2, 0.5, 0.6, 0.7], YOU = { name: "you", colour: "currentColor", dash: [] };
const hand = { seed: 1, s: null, game: null, events: [], regret: [], now: 0, next: 0, curves: null, stop: null };

// The means in an order that depends on the seed alone (Fisher & Yates).
function shuffled(seed) {
  const random = engine.generator(seed, 60), means = [...MEANS];
  for (let i = means.length - 1; i > 0; i--) { const j = Math.floor(random() * (i + 1)); [means[i], means[j]] = [means[j], means[i]]; }
  return means;
}

function startHand() {
  hand.stop?.();
  const s = { ...HAND, seed: hand.seed, means: shuffled(hand.seed), learners: RIVALS };
  Object.assign(hand, { s, game: engine.game(s, null, 0, () => hand.next), events: [], regret: [], now: 0, curves: null });
  hand.stop = simulate(s, SCORED, (curves, done) => { if (done) { hand.curves = curves; drawHand(); } });
  drawHand();
}

function pull(arm) {
  if (mode !== "learner" || hand.events.length >= HAND.rounds) return;
  hand.next = arm;
  hand.game.step();
  addEvent(hand.events, hand.game);
  hand.regret.push(hand.game.regret());
  drawHand();
}

// How many losses 0 and 1 have been observed of each arm: actions whose feedback has arrived.
function observed() {
  const counts = Array.from({ length: HAND.K }, () => [0, 0]), t = hand.events.length;
  hand.events.forEach(({ arm, loss, delay }, i) => { if (i + 1 + delay <= t) counts[arm][loss]++; });
  return counts;
}

const drawHand = perFrame(() => {
  if (mode !== "learner" || !hand.s) return;
  const t = hand.events.length, over = t >= HAND.rounds, counts = observed(), due = t - HAND.delay;
  hand.now = t + (over ? 0.6 : 0.55);
  drawStrip($("hand"), hand.events, hand.now, { delay: HAND.delay, ribbon: false });
  [...$("pulls").children].forEach((button, arm) => {
    button.disabled = over;
    button.querySelector("span").textContent = over ? `mean loss ${hand.s.means[arm]}` : `observed: ${counts[arm][0]} × loss 0, ${counts[arm][1]} × loss 1`;
  });
  const last = due >= 1 ? hand.events[due - 1] : null;
  $("hand-status").textContent = over ? "All sixty rounds are played."
    : t === 0 ? "Choose an arm. Keys 1 to 4 work as well. The first feedback arrives after ten more rounds."
    : `Round ${t} of ${HAND.rounds}.` + (last ? ` Feedback of round ${due} arrived: arm ${last.arm + 1} had loss ${last.loss}.` : ` First feedback in ${HAND.delay + 1 - t} rounds.`);
  $("hand-results").hidden = !(over && hand.curves);
  $("hand-verdict").textContent = over ? verdictOfHand() : "";
  if (over && hand.curves) drawHandResults();
  document.body.dataset.done = Boolean(over && hand.curves);
});

const handPoint = () => engine.recorded(HAND.rounds).length - 1;

function verdictOfHand() {
  if (!hand.curves) return "Simulating the algorithms…";
  const mine = hand.regret.at(-1), beaten = RIVALS.filter((id) => estimate(hand.curves[id], handPoint()).mean > mine).length;
  return `Your regret is ${mine.toFixed(1)}: below the mean of ${beaten} of the three algorithms.`;
}

function drawHandResults() {
  const record = engine.recorded(HAND.rounds), mine = { mean: hand.regret.at(-1), error: 0, half: 0, n: 1 }, body = $("hand-table");
  const series = RIVALS.map((id) => ({ id, ...ALGORITHMS[id], points: record.map((_, i) => estimate(hand.curves[id], i)) }));
  const you = { id: "you", ...YOU, colour: colourOf("--ink"), points: record.map((t) => ({ mean: hand.regret[t - 1], half: 0, n: 1 })) };
  drawChart($("hand-chart"), [...series, you], record, HAND.rounds, false);
  body.replaceChildren();
  for (const one of [...series, you].sort((p, q) => p.points.at(-1).mean - q.points.at(-1).mean))
    regretRow(body, one, one.name, one.id === "you" ? mine : one.points.at(-1), one.id === "you" ? "one run" : "", { learner: one.id });
}

for (let arm = 0; arm < HAND.K; arm++) {
  const button = document.createElement("button");
  button.innerHTML = `<b>Arm ${arm + 1}</b><span></span>`;
  button.style.borderColor = armColour(arm);
  button.addEventListener("click", () => pull(arm));
  $("pulls").append(button);
}
document.addEventListener("keydown", (event) => { if (!event.ctrlKey && !event.metaKey && !event.altKey && "1234".includes(event.key) && event.key) pull(Number(event.key) - 1); });
$("deal").addEventListener("click", () => { hand.seed = 1 + Math.floor(Math.random() * 1e6); writeAddress(); startHand(); });
