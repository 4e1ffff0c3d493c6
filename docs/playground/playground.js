// The page: modes, presets, and the settings in the address.
"use strict";
const INTROS = {
  watch: "Each action emits a dot. It travels for its delay and lands as an observation; until then it is outstanding. The algorithm acts on what has landed.",
  compare: "Every curve is simulated in your browser: the mean regret of 64 runs with its 95% confidence interval.",
  adversary: `Two arms, ${SEARCHED.rounds} rounds: the good arm has loss 0, the other loss 1. The algorithm observes every loss ${SEARCHED.delay} rounds later. Force as much regret as you can.`,
  learner: "Four arms with losses 0 and 1. Find the arm with the smallest mean loss. The feedback of each choice arrives ten rounds later.",
};
const PRESETS = {
  "Stochastic": { K: 5, losses: "stochastic", gap: 0.2, delay: 10, law: "fixed", rounds: 5000 },
  "Stochastically constrained": { K: 5, losses: "constrained", gap: 0.2, delay: 10, law: "fixed", rounds: 5000 },
  "Delay-matched switching": { K: 4, losses: "switching", gap: 0.2, delay: 50, law: "fixed", rounds: 20000 },
  "Missing feedback": { K: 5, losses: "stochastic", gap: 0.2, delay: 10, law: "missing", rounds: 5000 },
};
const SHOWN_AT_FIRST = ["bobw", "bobw-1-1", "zimmert-seldin", "tsallis-inf", "ucb1", "thompson"];
const NUMBERS = ["K", "gap", "delay", "law", "losses", "rounds"];
// Names in links of earlier versions.
const FORMER = { paper: "bobw", lowered: "bobw-1-1", zs20: "zimmert-seldin", exp3: "delayed-exp3", tsallis: "tsallis-inf", adversarial: "switching" };
const current = (name) => FORMER[name] ?? name;

for (const [id, look] of Object.entries(ALGORITHMS)) {
  const label = document.createElement("label"), box = document.createElement("input");
  label.className = "check";
  Object.assign(box, { type: "checkbox", name: "learner", value: id, id: `learner-${id}`, checked: SHOWN_AT_FIRST.includes(id) });
  label.append(box, look.name);
  swatch(label, look);
  $("learners").append(label);
  $("algorithm").append(new Option(look.name, id, false, id === "tsallis-inf"));
}
for (const [name, preset] of Object.entries(PRESETS)) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: name });
  button.addEventListener("click", () => { setControls(preset); restart(); });
  $("presets").append(button);
}

function setControls(values) {
  for (const name of NUMBERS) if (name in values) form.elements[name].value = current(values[name]);
  for (const select of form.querySelectorAll("select")) if (select.selectedIndex < 0) select.selectedIndex = 0; // no such option
}

function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  setControls(Object.fromEntries(given));
  if (given.has("learners")) {
    const wanted = given.get("learners").split(",").map(current);
    for (const box of form.querySelectorAll("[name=learner]")) box.checked = wanted.includes(box.value);
  }
  if (given.has("algorithm") && given.get("algorithm") in ALGORITHMS) form.elements.algorithm.value = given.get("algorithm");
  form.elements.log.checked = given.get("log") === "1";
  if (given.has("switches")) duel.good = goodArms(given.get("first") === "1" ? 1 : 0, given.get("switches").split(",").map(Number));
  hand.seed = Math.max(1, Math.floor(Number(given.get("seed"))) || 1);
  mode = given.get("mode") in INTROS ? given.get("mode") : given.has("learners") ? "compare" : "watch";
}

// The settings live in the address: a link shows the same picture.
function writeAddress() {
  const { K, gap, delay, law, losses, rounds, learners, algorithm } = settings(), all = { mode };
  if (mode === "watch" || mode === "compare") Object.assign(all, { K, gap, delay, law, losses });
  if (mode === "watch" || mode === "adversary") all.algorithm = algorithm;
  if (mode === "compare") Object.assign(all, { rounds, learners: learners.join(",") }, form.elements.log.checked ? { log: 1 } : {});
  if (mode === "adversary") Object.assign(all, { first: duel.good[0], switches: switchesOf(duel.good).join(",") });
  if (mode === "learner") all.seed = hand.seed;
  history.replaceState(null, "", "#" + new URLSearchParams(all).toString().replaceAll("%2C", ","));
}

function showMode() {
  document.body.dataset.mode = mode;
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.setAttribute("aria-selected", tab.dataset.mode === mode);
    $(`view-${tab.dataset.mode}`).hidden = tab.dataset.mode !== mode;
  }
  for (const part of document.querySelectorAll("[data-modes]")) part.hidden = !part.dataset.modes.split(" ").includes(mode);
  document.querySelector(".board").classList.toggle("wide", mode === "learner");
  $("intro").textContent = INTROS[mode];
}

function showValues() {
  for (const output of form.querySelectorAll("output")) output.textContent = form.elements[output.htmlFor.value].value;
  form.elements.gap.disabled = form.elements.losses.value === "switching"; // which has no gap
  const same = (preset) => NUMBERS.every((name) => form.elements[name].value === String(preset[name]) || (name === "rounds" && mode === "watch") || (name === "gap" && preset.losses === "switching"));
  Object.values(PRESETS).forEach((preset, place) => $("presets").children[place].setAttribute("aria-pressed", same(preset)));
}

const STARTS = { watch: startWatch, compare: startCompare, adversary: startDuel, learner: startHand };
function restart() {
  document.body.dataset.done = false;
  showValues();
  writeAddress();
  STARTS[mode]();
}

let waiting = 0;
form.addEventListener("input", ({ target }) => {
  if (target.name === "log") { writeAddress(); return drawCompare(); }
  clearTimeout(waiting);
  showValues();
  document.body.dataset.done = false;
  waiting = setTimeout(restart, 120); // a slider that is being moved sends many events
});
form.addEventListener("submit", (event) => event.preventDefault());
function changeMode(tab) {
  stopLive();
  mode = tab.dataset.mode;
  showMode();
  restart();
}
for (const tab of document.querySelectorAll("[role=tab]")) tab.addEventListener("click", () => changeMode(tab));
document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
  const next = { ArrowRight: "nextElementSibling", ArrowLeft: "previousElementSibling" }[event.key], tab = next && document.activeElement[next];
  if (tab) { tab.focus(); changeMode(tab); }
});

const redraw = () => { drawWatch(); drawCompare(); drawDuel(); drawHand(); };
const watcher = new ResizeObserver(redraw);
for (const id of ["strip", "chart", "duel", "hand"]) watcher.observe($(id));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
if (/\/docs\/playground\/[^/]*$/.test(location.pathname)) $("docs").href = "../index.md"; // opened from the repository, not from the site
window.addEventListener("hashchange", () => { readAddress(); showMode(); restart(); });
readAddress();
showMode();
restart();
