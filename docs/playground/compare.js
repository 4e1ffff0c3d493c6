// "Compare algorithms": mean regret of the chosen algorithms over 64 runs.
"use strict";
const compare = { stop: null, shown: null };

function startCompare() {
  if (compare.stop) compare.stop();
  const s = settings(), mine = { s, record: engine.recorded(s.rounds), curves: {}, done: false };
  compare.shown = mine;
  compare.stop = simulate(s, RUNS, (curves, done) => {
    if (mine !== compare.shown) return;
    Object.assign(mine, { curves, done });
    drawCompare();
  });
  drawCompare();
}

const drawCompare = perFrame(() => {
  if (mode !== "compare" || !compare.shown) return;
  const { s, record, curves, done } = compare.shown;
  const series = s.learners.filter((id) => curves[id]?.length)
    .map((id) => ({ id, ...ALGORITHMS[id], points: record.map((_, i) => estimate(curves[id], i)) }));
  drawChart($("chart"), series, record, s.rounds, form.elements.log.checked);
  const body = $("table");
  body.replaceChildren();
  for (const one of [...series].sort((p, q) => p.points.at(-1).mean - q.points.at(-1).mean))
    regretRow(body, one, one.name, one.points.at(-1), one.id === "uniform" ? "exact" : "", { learner: one.id });
  const status = s.learners.length === 0 ? "Choose an algorithm." : done ? `${RUNS} runs of ${s.rounds.toLocaleString("en")} rounds each.` : "Simulating…";
  if ($("status").textContent !== status) $("status").textContent = status;
  document.body.dataset.done = done;
});
