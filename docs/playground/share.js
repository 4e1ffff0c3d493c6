// Copy as Python, copy link, download PNG.
"use strict";
const PYTHON = {
  "bobw": (s) => `jb.BestOfBothWorlds(max_delay=${engine.longest(s)})`,
  "bobw-1-1": (s) => `jb.BestOfBothWorlds(max_delay=${engine.longest(s)}, linear=1.0, factor=1.0)`,
  "zimmert-seldin": () => "jb.ZimmertSeldin()",
  "delayed-exp3": () => "jb.DelayedExp3()",
  "tsallis-inf": () => "jb.TsallisINF()",
  "ucb1": () => "jb.DelayedUCB1()",
  "thompson": () => "jb.DelayedThompson()",
  "uniform": () => "jb.Uniform()",
};

const decimal = (value) => String(Math.round(value * 1e6) / 1e6);

function pythonLosses(s) {
  const others = (best, other) => `[${decimal(best)}] + [${decimal(other)}] * ${s.K - 1}`;
  if (s.losses === "stochastic") return `jb.losses.Bernoulli(${others((1 - s.gap) / 2, (1 + s.gap) / 2)})`;
  if (s.losses === "constrained") return `jb.losses.StochasticallyConstrained(gap=${decimal(s.gap)}, arms=${s.K})`;
  if (s.losses === "means") return `jb.losses.Bernoulli([${s.means.join(", ")}])`;
  if (s.losses === "drawn") return "jb.losses.Table(1.0 - np.eye(2)[good])";
  return `jb.losses.DelayMatchedSwitching(delay=${Math.max(1, s.delay)}, arms=${s.K})`;
}

function pythonDelays(s) {
  if (s.law === "missing") return `jb.delays.PacketLoss(${1 - engine.MISSING}, delay=${s.delay})`;
  if (s.law === "fixed" || s.delay === 0) return `jb.delays.Fixed(${s.delay})`;
  return `jb.delays.Geometric(mean=${s.delay}.0, bound=${engine.longest(s)})`;
}

// A program that repeats what is shown with the library and draws it.
function pythonProgram() {
  const s = mode === "adversary" ? duelSettings(duel.good) : mode === "learner" ? hand.s : settings(), lines = ["import jaxbandit as jb", ""];
  const learners = mode === "watch" ? [s.algorithm] : s.learners, log = mode === "compare" && form.elements.log.checked;
  if (mode === "adversary") {
    const switches = switchesOf(duel.good);
    lines.splice(0, 1, "import jaxbandit as jb", "import numpy as np");
    lines.push(`switches = np.array([${switches.join(", ")}], dtype=int)  # rounds, counted from 0, before which the good arm changes`,
      `good = (${duel.good[0]} + np.searchsorted(switches, np.arange(${s.rounds}), side="right")) % 2`);
  }
  lines.push(`losses = ${pythonLosses(s)}`, `delays = ${pythonDelays(s)}`, "learners = {");
  for (const id of learners) lines.push(`    "${ALGORITHMS[id].name}": ${PYTHON[id](s)},`);
  lines.push("}", "results = {", "    name: jb.simulate(learner, losses, delays, " +
    `rounds=${s.rounds}, runs=256, seed=0${mode === "watch" ? ", probabilities=True" : ""})`, "    for name, learner in learners.items()", "}");
  lines.push("for name, result in results.items():", "    print(name, result)");
  if (mode === "watch") lines.push(`jb.plots.probabilities(results["${ALGORITHMS[s.algorithm].name}"]).savefig("probabilities.png")`);
  else if (learners.length) lines.push(`jb.plots.regret(results${log ? ', log="x"' : ""}).savefig("regret.png")`);
  return lines.join("\n") + "\n";
}

async function copy(text, said) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or an old browser
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  $("said").textContent = said;
  setTimeout(() => { $("said").textContent = ""; }, 4000);
}

// A chart as a picture of its own: colours and names, which the page's style sheet and table hold, are put into it.
function chartPicture(chart) {
  const picture = chart.cloneNode(true), width = chart.clientWidth, height = chart.clientHeight, named = width > 600 ? [] : [...chart.parentElement.querySelectorAll("tbody tr")];
  const whole = height + 20 * named.length, style = ["--line", "--soft", "--ink"].map((name) => `${name}: ${colourOf(name)}`).join("; ");
  for (const [name, value] of Object.entries({ xmlns: SVG, width, height: whole, style })) picture.setAttribute(name, value);
  const back = element(picture, "rect", { width, height: whole, fill: colourOf("--back") });
  picture.prepend(back);
  element(picture, "style", {}, "text { fill: var(--soft); font: 13px system-ui, sans-serif; }");
  named.forEach((row, place) => {
    const line = row.querySelector("line").cloneNode(true), y = height + 20 * place + 8;
    for (const [name, value] of Object.entries({ x1: 14, x2: 48, y1: y, y2: y })) line.setAttribute(name, value);
    picture.append(line);
    element(picture, "text", { x: 56, y: y + 4 }, `${row.querySelector("th").textContent}: ${row.cells[1].textContent}`);
  });
  return { text: new XMLSerializer().serializeToString(picture), width, height: whole };
}

async function pictureOfMode() {
  const chart = mode === "compare" ? $("chart") : mode === "learner" && !$("hand-results").hidden ? $("hand-chart") : null;
  if (!chart) return { watch: $("strip"), adversary: $("duel"), learner: $("hand") }[mode];
  const { text, width, height } = chartPicture(chart), image = new Image(), canvas = document.createElement("canvas");
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  Object.assign(canvas, { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas;
}

async function download() {
  const canvas = await pictureOfMode();
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  const link = document.createElement("a");
  Object.assign(link, { href: URL.createObjectURL(blob), download: `jaxbandit-${mode}.png` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

$("copy-python").addEventListener("click", () => copy(pythonProgram(), "Program copied."));
$("copy-link").addEventListener("click", () => { writeAddress(); copy(location.href, "Link copied."); });
$("download").addEventListener("click", download);
