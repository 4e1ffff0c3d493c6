// What all modes share: the settings of the form, simulation in a worker, means with intervals, and canvases.
"use strict";
const engine = makeEngine(), RUNS = 64;
let mode = "watch"; // watch, compare, adversary or learner
const $ = (id) => document.getElementById(id);
const form = $("controls"), SVG = "http://www.w3.org/2000/svg";

function settings() {
  const number = (name) => Number(form.elements[name].value);
  return {
    K: number("K"), gap: number("gap"), delay: number("delay"), law: form.elements.law.value, rounds: number("rounds"), seed: 1,
    losses: form.elements.losses.value, algorithm: form.elements.algorithm.value,
    learners: [...form.querySelectorAll("[name=learner]:checked")].map((box) => box.value),
  };
}

const workerAddress = URL.createObjectURL(new Blob([`const engine = (${makeEngine})();
  onmessage = ({ data: { s, runs } }) => {
    const record = engine.recorded(s.rounds);
    for (let run = 0; run < runs; run++)
      for (const id of s.learners) if (id !== "uniform" || run === 0) postMessage({ id, regret: engine.run(s, id, run, record) });
    postMessage({ done: true });
  };`], { type: "text/javascript" }));

// Simulate s.learners in a worker; onChange(curves, done) is called after every run. Returns a function that stops it.
function simulate(s, runs, onChange) {
  const worker = new Worker(workerAddress), curves = Object.fromEntries(s.learners.map((id) => [id, []]));
  worker.onmessage = ({ data }) => {
    if (data.done) worker.terminate(); else curves[data.id].push(data.regret);
    onChange(curves, Boolean(data.done));
  };
  worker.postMessage({ s, runs });
  return () => { worker.onmessage = null; worker.terminate(); };
}

// 97.5% quantile of Student's t, as an expansion around that of the normal distribution.
const student = (f) => 1.959964 + 2.372271 / f + 2.822500 / f ** 2 + 2.555848 / f ** 3;

function estimate(curves, point) {
  const n = curves.length;
  let mean = 0, squares = 0;
  for (const curve of curves) mean += curve[point] / n;
  for (const curve of curves) squares += (curve[point] - mean) ** 2;
  const error = n > 1 ? Math.sqrt(squares / (n - 1) / n) : 0;
  return { mean, error, half: n > 2 ? student(n - 1) * error : 0, n };
}

function element(parent, tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  parent.append(made);
  return made;
}

const svgDash = (dash, width) => dash.map((length) => length * width).join(" ");

// A short piece of an algorithm's curve.
function swatch(parent, look) {
  const piece = element(parent, "svg", { width: 34, height: 8, "aria-hidden": "true" });
  element(piece, "line", { x1: 0, x2: 34, y1: 4, y2: 4, stroke: look.colour, "stroke-width": 3, "stroke-dasharray": svgDash(look.dash, 2) });
}

// One row of a table of regrets; `data` becomes data attributes.
function regretRow(body, look, name, { mean, error, half, n }, exact, data) {
  const row = body.insertRow(), head = document.createElement("th");
  Object.assign(row.dataset, { ...data, mean, error, runs: n });
  head.scope = "row";
  if (look) swatch(head, look);
  head.append(name);
  row.append(head);
  const digits = Math.abs(mean) < 200 ? 1 : 0, interval = `${(mean - half).toFixed(digits)} to ${(mean + half).toFixed(digits)}`;
  for (const text of [mean.toFixed(digits), exact || (n > 2 ? interval : "…"), exact ? "" : n.toLocaleString("en")]) row.insertCell().textContent = text;
}

const colourOf = (variable) => getComputedStyle(document.documentElement).getPropertyValue(variable).trim();

// The drawing context of a canvas at the resolution of the screen, cleared.
function context(canvas) {
  const width = canvas.clientWidth, height = canvas.clientHeight, scale = Math.max(window.devicePixelRatio || 1, 1);
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.fillStyle = colourOf("--back");
  pen.fillRect(0, 0, width, height);
  pen.font = "13px system-ui, sans-serif";
  return { pen, width, height };
}

// Call at most once per frame.
function perFrame(draw) {
  let pending = false;
  return () => {
    if (pending) return;
    pending = true;
    requestAnimationFrame(() => { pending = false; draw(); });
  };
}
