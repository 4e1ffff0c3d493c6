// Regret curves with their 95% confidence intervals, as SVG.
"use strict";

// Multiples of 1, 2 or 5 times a power of ten, about `most` of them from `bottom` to `top`.
function ticks(bottom, top, most) {
  const raw = (top - bottom) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((one) => one >= raw), all = [];
  for (let i = Math.ceil(bottom / step - 1e-9); i * step <= top * (1 + 1e-9); i++) all.push(i * step + 0); // + 0: no minus zero
  return all;
}

// Names at the ends of the curves, moved apart so that they do not overlap: [{ name, y }] in pixels.
function spread(labels, top, bottom, gap = 16) {
  labels.sort((p, q) => p.y - q.y);
  let above = top - gap;
  for (const label of labels) above = label.y = Math.max(label.y, above + gap);
  let below = bottom + gap;
  for (const label of [...labels].reverse()) below = label.y = Math.min(label.y, below - gap);
  return labels;
}

// series: [{ name, colour, dash, points: [{ mean, half, n }] }], one point for each round in `record`.
function drawChart(chart, series, record, rounds, log) {
  const width = chart.clientWidth, height = chart.clientHeight, wide = width > 600;
  const left = 62, bottom = 44, top = 12, right = wide ? 168 : 26;
  const ends = series.flatMap(({ points }) => points.flatMap((p) => (p.n > 3 ? [p.mean - p.half, p.mean + p.half] : [p.mean])));
  const highest = Math.max(1, ...ends) * 1.05, lowest = Math.min(0, ...ends) * 1.05;
  const across = (t) => left + (width - left - right) * (log ? Math.log(t) / Math.log(rounds) : t / rounds);
  const up = (value) => height - bottom - (height - bottom - top) * (value - lowest) / (highest - lowest);

  chart.replaceChildren();
  for (const value of ticks(lowest, highest, 6)) {
    element(chart, "line", { x1: left, x2: width - right, y1: up(value), y2: up(value), stroke: "var(--line)" });
    element(chart, "text", { x: left - 8, y: up(value) + 4, "text-anchor": "end" }, value.toLocaleString("en"));
  }
  const times = log ? [1, 10, 100, 1000, 10000].filter((t) => t <= rounds) : ticks(0, rounds, wide ? 8 : 4);
  for (const t of times) element(chart, "text", { x: across(t), y: height - bottom + 19, "text-anchor": "middle" }, t.toLocaleString("en"));
  element(chart, "text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "round");
  element(chart, "text", { x: 14, y: (height - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${(height - bottom) / 2})` }, "mean regret");

  for (const { colour, dash, points } of series) {
    const at = (value) => points.map((p, i) => `${across(record[i]).toFixed(1)},${up(value(p)).toFixed(1)}`);
    const band = [...at((p) => p.mean + p.half), ...at((p) => p.mean - p.half).reverse()].join(" ");
    element(chart, "polygon", { points: band, fill: colour, opacity: 0.2 });
    element(chart, "polyline", { points: at((p) => p.mean).join(" "), fill: "none", stroke: colour, "stroke-width": 2.2, "stroke-dasharray": svgDash(dash, 2.2) });
  }
  if (!wide) return; // the table below has the names
  const labels = series.map(({ name, colour, points }) => ({ name, colour, from: up(points.at(-1).mean), y: up(points.at(-1).mean) }));
  for (const { name, colour, from, y } of spread(labels, top, height - bottom)) {
    element(chart, "line", { x1: width - right + 2, x2: width - right + 16, y1: from, y2: y, stroke: colour });
    element(chart, "text", { x: width - right + 20, y: y + 4 }, name);
  }
}
