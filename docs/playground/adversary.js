// "You are the adversary": the visitor chooses the good arm of each round while the learner's observations are d rounds old.
"use strict";
const SCORED = 256, LIVE_SPEED = 30; // runs of a score; rounds per second
const duel = {
  good: new Int8Array(SEARCHED.rounds), events: [], game: null, live: false, now: 0, lane: 0, last: 0, from: null,
  stops: {}, scores: {}, regret: 0,
};

function duelSettings(good) {
  const algorithm = form.elements.algorithm.value, { rounds, delay, arms } = SEARCHED;
  return { K: arms, rounds, delay, law: "fixed", losses: "drawn", good, seed: 1, algorithm, learners: [algorithm] };
}

const switchesOf = (good) => [...good.keys()].filter((t) => t > 0 && good[t] !== good[t - 1]);

// The good arm of each round, from the rounds (counted from 0) before which it changes.
function goodArms(first, switches) {
  const good = new Int8Array(SEARCHED.rounds);
  for (let t = 0, arm = first; t < good.length; t++) { if (switches.includes(t)) arm = 1 - arm; good[t] = arm; }
  return good;
}

const matchedSwitches = () => Array.from({ length: Math.floor((SEARCHED.rounds - 1) / (2 * SEARCHED.delay)) }, (_, i) => 2 * SEARCHED.delay * (i + 1));

// Mean regret of a sequence over many runs, under a name in the table.
function score(name, good) {
  duel.stops[name]?.();
  const s = duelSettings(good), point = engine.recorded(s.rounds).length - 1;
  duel.scores[name] = null;
  duel.stops[name] = simulate(s, SCORED, (curves, done) => {
    if (done) { duel.scores[name] = estimate(curves[s.algorithm], point); drawDuel(); }
  });
}

function showRun() { // the first run against the whole sequence
  const s = duelSettings(duel.good);
  duel.game = engine.game(s, s.algorithm, 0);
  duel.events = [];
  while (duel.events.length < s.rounds) { duel.game.step(); addEvent(duel.events, duel.game); }
  duel.now = s.rounds;
  duel.regret = duel.game.regret();
}

// A new sequence was drawn, loaded or played.
function scoreDuel() {
  showRun();
  score("yours", duel.good.slice());
  writeAddress();
  drawDuel();
}

function startDuel() {
  stopLive();
  score("matched", goodArms(0, matchedSwitches()));
  scoreDuel();
}

function playLive() {
  const s = duelSettings(duel.good);
  duel.stops.yours?.();
  duel.good.fill(0);
  Object.assign(duel, { game: engine.game(s, s.algorithm, 0), events: [], now: 0, live: true, lane: 0, last: performance.now(), regret: 0 });
  duel.scores.yours = null;
  $("live").textContent = "Stop";
  $("duel").focus({ preventScroll: true });
  requestAnimationFrame(tickDuel);
}

function stopLive() {
  duel.live = false;
  $("live").textContent = "Play live";
}

function tickDuel(time) {
  if (!duel.live || mode !== "adversary") return stopLive();
  duel.now = Math.min(duel.now + Math.min((time - duel.last) / 1000, 0.1) * LIVE_SPEED, SEARCHED.rounds);
  duel.last = time;
  while (duel.events.length < Math.floor(duel.now)) {
    duel.good[duel.events.length] = duel.lane;
    duel.game.step();
    addEvent(duel.events, duel.game);
  }
  duel.regret = duel.game.regret();
  if (duel.events.length === SEARCHED.rounds) { stopLive(); scoreDuel(); } else { drawDuel(); requestAnimationFrame(tickDuel); }
}

const lanes = { left: 52, right: 10, top: 26, high: 46 }; // of the drawing area: two lanes, arm 1 above arm 2
const duelX = (width, t) => lanes.left + (width - lanes.left - lanes.right) * t / SEARCHED.rounds;

const drawDuel = perFrame(() => {
  if (mode !== "adversary") return;
  const { pen, width, height } = context($("duel")), played = duel.events.length, line = colourOf("--line");
  const ribbon = lanes.top + 2 * lanes.high + 34, foot = height - 28;
  caption(pen, duel.live ? "move up or down: which arm is good now?" : "drag: which arm is good in each round?", 8, 17);
  for (let arm = 0; arm < 2; arm++) {
    const y = lanes.top + arm * lanes.high;
    pen.fillStyle = colourOf("--panel");
    pen.fillRect(lanes.left, y, width - lanes.left - lanes.right, lanes.high - 2);
    pen.fillStyle = armColour(arm);
    for (let t = 0; t < (duel.live ? played : SEARCHED.rounds); t++)
      if (duel.good[t] === arm) pen.fillRect(duelX(width, t), y, duelX(width, t + 1) - duelX(width, t) + 0.5, lanes.high - 2);
    caption(pen, `arm ${arm + 1}`, 8, y + 28);
  }
  caption(pen, "the algorithm’s probability of each arm (one run)", 8, ribbon - 9);
  for (let t = 0; t < played; t++) {
    const x = duelX(width, t), wide = duelX(width, t + 1) - x + (t + 1 < played ? 1 : 0), split = duel.events[t].x[0] * (foot - ribbon);
    pen.fillStyle = armColour(0);
    pen.fillRect(x, ribbon, wide, split);
    pen.fillStyle = armColour(1);
    pen.fillRect(x, ribbon + split, wide, foot - ribbon - split);
  }
  pen.strokeStyle = line;
  pen.lineWidth = 1;
  pen.strokeRect(lanes.left, ribbon, width - lanes.left - lanes.right, foot - ribbon);
  if (duel.live) { // what the learner has not observed yet
    const x = duelX(width, Math.max(0, played - SEARCHED.delay)), now = duelX(width, played);
    pen.fillStyle = colourOf("--soft");
    pen.globalAlpha = 0.3;
    pen.fillRect(x, lanes.top - 4, now - x, 2 * lanes.high + 6);
    pen.globalAlpha = 1;
    pen.fillRect(now - 1, lanes.top - 6, 2, foot - lanes.top + 6);
    pen.strokeStyle = colourOf("--ink");
    pen.lineWidth = 2;
    pen.strokeRect(now + 1, lanes.top + duel.lane * lanes.high, 8, lanes.high - 2);
  }
  for (const t of [0, 100, 200, 300]) caption(pen, t ? String(t) : "round 0", duelX(width, t), height - 8, t === 0 ? "left" : t === 300 ? "right" : "center");
  fillDuel();
});

function fillDuel() {
  const id = form.elements.algorithm.value, found = SEARCHED.adversaries[id], look = ALGORITHMS[id], yours = duel.scores.yours;
  const searched = { mean: found.regret, error: found.error, half: 1.96 * found.error, n: 4096 }, body = $("duel-table");
  const verdict = duel.live ? `Regret so far: ${duel.regret.toFixed(1)}. The shaded rounds are not observed yet.`
    : yours ? `Your sequence forces regret ${yours.mean.toFixed(1)} on ${look.name}: ${Math.round(100 * yours.mean / found.regret)}% of the searched adversary’s.` : "Scoring…";
  if ($("duel-verdict").textContent !== verdict) $("duel-verdict").textContent = verdict;
  body.replaceChildren();
  const rows = [["yours", "your sequence", yours], ["matched", "delay-matched switching", duel.scores.matched], ["searched", "searched adversary (library)", searched]];
  for (const [row, name, value] of rows) if (value) regretRow(body, null, name, value, id === "uniform" ? "exact" : "", { row });
  document.body.dataset.done = Boolean(!duel.live && yours && duel.scores.matched);
}

// Paint the lane under the pointer into every round that it has passed.
function paint(event) {
  const box = $("duel").getBoundingClientRect(), lane = event.clientY - box.top < lanes.top + lanes.high ? 0 : 1;
  duel.lane = lane;
  if (duel.live || duel.from === null) return;
  const share = (event.clientX - box.left - lanes.left) / (box.width - lanes.left - lanes.right);
  const t = Math.min(Math.max(Math.floor(share * SEARCHED.rounds), 0), SEARCHED.rounds - 1), from = duel.from < 0 ? t : duel.from;
  for (let at = Math.min(from, t); at <= Math.max(from, t); at++) duel.good[at] = lane;
  duel.from = t;
  showRun();
  duel.scores.yours = null;
  drawDuel();
}

$("duel").addEventListener("pointerdown", (event) => { duel.from = -1; $("duel").setPointerCapture(event.pointerId); paint(event); });
$("duel").addEventListener("pointermove", paint);
for (const end of ["pointerup", "pointercancel"])
  $("duel").addEventListener(end, () => { if (duel.from !== null && !duel.live) scoreDuel(); duel.from = null; });
$("duel").addEventListener("keydown", (event) => {
  if (event.key !== "ArrowUp" && event.key !== "ArrowDown") return;
  event.preventDefault();
  duel.lane = event.key === "ArrowUp" ? 0 : 1;
});
const loadSequence = (switches) => { stopLive(); duel.good = goodArms(0, switches); scoreDuel(); };
$("live").addEventListener("click", () => { if (duel.live) { stopLive(); scoreDuel(); } else playLive(); });
$("clear").addEventListener("click", () => loadSequence([]));
$("matched").addEventListener("click", () => loadSequence(matchedSwitches()));
$("searched").addEventListener("click", () => loadSequence(SEARCHED.adversaries[form.elements.algorithm.value].switches));
