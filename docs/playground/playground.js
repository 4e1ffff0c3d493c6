// The page: reads the controls, lets a worker simulate, draws what comes back.
"use strict";
const { LEARNERS, recorded } = makeEngine();
const RUNS = 64, SHOWN_AT_FIRST = ["paper", "lowered", "zs20", "tsallis", "ucb1"];
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8a8a8a"];
const DASHES = ["", "8 4", "10 3 2 3", "2 3", "", "8 4", "10 3 2 3"];
const looks = Object.fromEntries(Object.keys(LEARNERS).map((id, i) => [id, { colour: COLOURS[i], dash: DASHES[i] }]));
const form = document.getElementById("controls"), chart = document.getElementById("chart");
const SVG = "http://www.w3.org/2000/svg";

function element(parent, tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

// How the curve of a learner looks, as a short piece of it.
function swatch(parent, id) {
  const piece = element(parent, "svg", { width: 30, height: 8, "aria-hidden": "true" });
  element(piece, "line", { x1: 0, x2: 30, y1: 4, y2: 4, stroke: looks[id].colour, "stroke-width": 3, "stroke-dasharray": looks[id].dash });
}

for (const [id, { name }] of Object.entries(LEARNERS)) {
  const label = document.createElement("label"), box = document.createElement("input");
  label.className = "check";
  Object.assign(box, { type: "checkbox", name: "learner", value: id, id: `learner-${id}`, checked: SHOWN_AT_FIRST.includes(id) });
  label.append(box, name);
  swatch(label, id);
  document.getElementById("learners").append(label);
}

function settings() {
  const number = (name) => Number(form.elements[name].value);
  return {
    K: number("K"), gap: number("gap"), delay: number("delay"), law: form.elements.law.value, rounds: number("rounds"), seed: 1,
    losses: form.elements.losses.value,
    learners: [...form.querySelectorAll("[name=learner]:checked")].map((box) => box.value),
  };
}

// The settings live in the address, so that a link shows the same picture.
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  for (const name of ["K", "gap", "delay", "law", "losses", "rounds"]) if (given.has(name)) form.elements[name].value = given.get(name);
  for (const select of form.querySelectorAll("select")) if (select.selectedIndex < 0) select.selectedIndex = 0; // no such option
  if (given.has("learners")) {
    const wanted = given.get("learners").split(",");
    for (const box of form.querySelectorAll("[name=learner]")) box.checked = wanted.includes(box.value);
  }
}

function writeAddress(s) {
  const { K, gap, delay, law, losses, rounds, learners } = s;
  history.replaceState(null, "", "#" + new URLSearchParams({ K, gap, delay, law, losses, rounds, learners: learners.join(",") }));
}

function workerSource() {
  return `const engine = (${makeEngine})();
    onmessage = ({ data: { s, runs } }) => {
      const record = engine.recorded(s.rounds);
      for (let run = 0; run < runs; run++)
        for (const id of s.learners) if (id !== "uniform" || run === 0) postMessage({ id, regret: engine.run(s, id, run, record) });
      postMessage({ done: true });
    };`;
}
const workerAddress = URL.createObjectURL(new Blob([workerSource()], { type: "text/javascript" }));

let worker = null, shown = null, framePending = false;

function showValues() {
  for (const output of form.querySelectorAll("output")) output.textContent = form.elements[output.htmlFor.value].value;
  form.elements.gap.disabled = form.elements.losses.value === "adversarial"; // whose arms take turns: there is no gap
}

function restart() {
  showValues();
  const s = settings();
  writeAddress(s);
  if (worker) worker.terminate();
  shown = { s, record: recorded(s.rounds), curves: Object.fromEntries(s.learners.map((id) => [id, []])), done: false };
  const mine = shown;
  worker = new Worker(workerAddress);
  worker.onmessage = ({ data }) => {
    if (mine !== shown) return;
    if (data.done) mine.done = true; else mine.curves[data.id].push(data.regret);
    drawSoon();
  };
  worker.postMessage({ s, runs: RUNS });
  drawSoon();
}

// 97.5 % quantile of Student's t, as an expansion around the normal's.
const student = (f) => 1.959964 + 2.372271 / f + 2.822500 / f ** 2 + 2.555848 / f ** 3;

function estimate(curves, point) {
  const n = curves.length;
  let mean = 0, squares = 0;
  for (const curve of curves) mean += curve[point] / n;
  for (const curve of curves) squares += (curve[point] - mean) ** 2;
  const error = n > 1 ? Math.sqrt(squares / (n - 1) / n) : 0;
  return { mean, error, half: n > 2 ? student(n - 1) * error : 0, n };
}

function drawSoon() {
  if (framePending) return;
  framePending = true;
  requestAnimationFrame(() => { framePending = false; draw(); });
}

// Multiples of 1, 2 or 5 times a power of ten, about `most` of them from `bottom` to `top`.
function ticks(bottom, top, most) {
  const raw = (top - bottom) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((one) => one >= raw), all = [];
  for (let i = Math.ceil(bottom / step - 1e-9); i * step <= top * (1 + 1e-9); i++) all.push(i * step + 0); // + 0: no minus zero
  return all;
}

function draw() {
  const { s, record, curves, done } = shown, log = form.elements.log.checked;
  const width = chart.clientWidth, height = chart.clientHeight, left = 62, bottom = 44, top = 10, right = 26;
  const stats = s.learners.filter((id) => curves[id].length).map((id) => ({ id, points: record.map((_, i) => estimate(curves[id], i)) }));
  const ends = stats.flatMap(({ points }) => points.flatMap((p) => (p.n > 3 ? [p.mean - p.half, p.mean + p.half] : [p.mean])));
  const highest = Math.max(1, ...ends) * 1.05, lowest = Math.min(0, ...ends) * 1.05;
  const across = (t) => left + (width - left - right) * (log ? Math.log(t) / Math.log(s.rounds) : t / s.rounds);
  const up = (value) => height - bottom - (height - bottom - top) * (value - lowest) / (highest - lowest);

  chart.replaceChildren(chart.querySelector("title"));
  for (const value of ticks(lowest, highest, 6)) {
    element(chart, "line", { x1: left, x2: width - right, y1: up(value), y2: up(value), stroke: "var(--line)" });
    element(chart, "text", { x: left - 8, y: up(value) + 4, "text-anchor": "end" }, value.toLocaleString("en"));
  }
  const times = log ? [1, 10, 100, 1000, 10000].filter((t) => t <= s.rounds) : ticks(0, s.rounds, width < 500 ? 4 : 8);
  for (const t of times) element(chart, "text", { x: across(t), y: height - bottom + 19, "text-anchor": "middle" }, t.toLocaleString("en"));
  element(chart, "text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "round");
  element(chart, "text", { x: 14, y: (height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(height - bottom) / 2})` }, "mean regret");

  for (const { id, points } of stats) {
    const at = (value) => points.map((p, i) => `${across(record[i]).toFixed(1)},${up(value(p)).toFixed(1)}`);
    const band = [...at((p) => p.mean + p.half), ...at((p) => p.mean - p.half).reverse()].join(" ");
    element(chart, "polygon", { points: band, fill: looks[id].colour, opacity: 0.2 });
    element(chart, "polyline", { points: at((p) => p.mean).join(" "), fill: "none", stroke: looks[id].colour, "stroke-width": 2.2, "stroke-dasharray": looks[id].dash });
  }
  fillTable(stats);
  const status = s.learners.length === 0 ? "Choose a learner." : done ? `${RUNS} runs of ${s.rounds.toLocaleString("en")} rounds each: done.` : "Simulating…";
  const said = document.getElementById("status");
  if (said.textContent !== status) said.textContent = status;
  document.body.dataset.done = done;
}

function fillTable(stats) {
  const body = document.getElementById("table");
  body.replaceChildren();
  for (const { id, points } of [...stats].sort((p, q) => p.points.at(-1).mean - q.points.at(-1).mean)) {
    const { mean, error, half, n } = points.at(-1), row = body.insertRow(), name = document.createElement("th");
    Object.assign(row.dataset, { learner: id, mean, error, runs: n });
    name.scope = "row";
    swatch(name, id);
    name.append(LEARNERS[id].name);
    row.append(name);
    const exact = id === "uniform";
    for (const text of [mean.toFixed(0), exact ? "exact" : n > 2 ? `${(mean - half).toFixed(0)} to ${(mean + half).toFixed(0)}` : "…", exact ? "" : n]) row.insertCell().textContent = text;
  }
}

let waiting = 0;
form.addEventListener("input", ({ target }) => {
  if (target.name === "log") return drawSoon();
  clearTimeout(waiting);
  showValues();
  document.body.dataset.done = false;
  waiting = setTimeout(restart, 120); // a slider that is being pulled sends many events
});
form.addEventListener("submit", (event) => event.preventDefault());
new ResizeObserver(drawSoon).observe(chart);
readAddress();
restart();
