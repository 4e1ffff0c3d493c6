// The timeline strip: each action emits a dot that travels for its delay and lands as an observation. Outstanding dots pile up.
"use strict";

// What the strip shows of one run: `events[t - 1]` is round t.
function addEvent(events, one) {
  events.push({ arm: one.arm, loss: one.loss, delay: one.delay, outstanding: one.outstanding, x: Float64Array.from(one.x) });
}

// Whether the feedback of round s is outstanding at the start of round t.
const isOutstanding = (events, s, t) => s < t && (events[s - 1].delay === engine.NEVER || s + events[s - 1].delay >= t);

function dot(pen, x, y, radius, colour, filled = true) {
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  if (filled) { pen.fillStyle = colour; pen.fill(); } else { pen.strokeStyle = colour; pen.lineWidth = Math.max(1, radius * 0.5); pen.stroke(); }
}

function caption(pen, text, x, y, align = "left") {
  pen.textAlign = align;
  pen.lineWidth = 4;
  pen.lineJoin = "round";
  pen.strokeStyle = colourOf("--back");
  pen.strokeText(text, x, y);
  pen.fillStyle = colourOf("--soft");
  pen.fillText(text, x, y);
}

// `now` is the time in rounds, with fractions: action t happens at t, the feedback of round s arrives at s + d_s + 1/2.
function drawStrip(canvas, events, now, { delay, ribbon = true }) {
  const { pen, width, height } = context(canvas), line = colourOf("--line"), soft = colourOf("--soft");
  const narrow = width < 560, pile = narrow ? 76 : 130, nowX = width - pile - 14, shown = Math.max(narrow ? 36 : 60, Math.ceil(2.2 * delay));
  const unit = (nowX - 8) / shown, at = (time) => nowX - (now - time) * unit;
  const top = 38, floor = ribbon ? height - 212 : height - 92, radius = Math.max(1.4, Math.min(5, unit * 0.42));
  const first = Math.max(1, Math.floor(now - shown)), last = Math.min(events.length, Math.floor(now)), t = last;
  const lands = (s) => { const d = events[s - 1].delay; return d === engine.NEVER ? Infinity : s + d + 0.5; };
  const depth = (s, time) => { // how far the dot of round s has come, from 0 to 1; missing feedback stays half way
    const d = events[s - 1].delay, p = (time - s) / ((d === engine.NEVER ? 2 * delay : d) + 0.5);
    return Math.min(p, d === engine.NEVER ? 0.5 : 1);
  };
  const y = (p) => top + p * (floor - top);

  pen.save();
  pen.beginPath();
  pen.rect(0, 0, nowX + 8, height);
  pen.clip();
  for (const lane of [top, floor]) { pen.fillStyle = line; pen.fillRect(0, lane - 0.5, nowX, 1); }
  const reach = Math.max(1, Math.floor(now - 3.5 * shown));
  for (let s = reach; s <= last; s++) {
    const { arm, loss, delay: d } = events[s - 1], missing = d === engine.NEVER, end = Math.min(lands(s), now);
    if (at(end) < -10 && at(s) < -10) continue;
    pen.globalAlpha = missing ? 0.35 : Math.min(0.55, 0.12 * unit);
    pen.strokeStyle = missing ? soft : armColour(arm);
    pen.lineWidth = 1;
    pen.setLineDash(missing ? [2, 3] : []);
    pen.beginPath();
    pen.moveTo(at(s), top);
    if (missing) pen.lineTo(at(Math.min(s + delay + 0.25, now)), y(depth(s, Math.min(s + delay + 0.25, now))));
    pen.lineTo(at(end), y(depth(s, end)));
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    dot(pen, at(s), top, radius, armColour(arm));
    if (lands(s) <= now) dot(pen, at(lands(s)), floor, radius, armColour(arm), loss === 1);
    else dot(pen, nowX, y(depth(s, now)), radius + 0.8, missing && now > s + delay ? soft : armColour(arm));
  }
  pen.restore();
  drawPile(pen, events, t, delay, nowX, width, top, floor);
  pen.fillStyle = soft;
  pen.fillRect(nowX - 0.5, top - 14, 1, floor - top + 28);
  caption(pen, "actions", 8, top - 16);
  caption(pen, narrow ? "observed (● loss 1, ○ loss 0)" : "observed feedback (● loss 1, ○ loss 0)", 8, floor + 24);
  caption(pen, `round ${t.toLocaleString("en")}`, nowX - 6, top - 16, "right");
  const from = floor + 52;
  drawOutstanding(pen, events, first, last, at, unit, nowX, from, 22);
  caption(pen, "outstanding observations σₜ", 8, from + 2);
  if (ribbon) {
    drawRibbon(pen, events, first, last, at, unit, nowX, from + 48, height - 12);
    caption(pen, "probability of each arm, xₜ", 8, from + 41);
  }
}

// The outstanding observations as a heap of dots beside the line of the present.
function drawPile(pen, events, t, delay, nowX, width, top, floor) {
  const open = [];
  for (let s = t - 1; s >= 1 && open.length < 4000; s--) if (isOutstanding(events, s, t)) open.push(s);
  const room = width - nowX - 22, tall = floor - top + 10;
  const cell = Math.max(2.5, Math.min(16, Math.sqrt(room * tall / Math.max(open.length, 1)) * 0.93)), columns = Math.max(1, Math.floor(room / cell));
  open.reverse().forEach((s, place) => {
    const row = Math.floor(place / columns), overdue = events[s - 1].delay === engine.NEVER && t > s + delay;
    pen.globalAlpha = overdue ? 0.6 : 1;
    dot(pen, nowX + 16 + cell / 2 + (place % columns) * cell, floor + 6 - cell / 2 - row * cell, cell * 0.4, overdue ? colourOf("--soft") : armColour(events[s - 1].arm));
    pen.globalAlpha = 1;
  });
  caption(pen, t ? `σₜ = ${events[t - 1].outstanding}` : "σₜ = 0", nowX + 16, top - 16);
}

// σ_t over time as a step curve.
function drawOutstanding(pen, events, first, last, at, unit, nowX, from, tall) {
  let most = 1;
  for (let s = first; s <= last; s++) most = Math.max(most, events[s - 1].outstanding);
  pen.fillStyle = colourOf("--accent");
  pen.globalAlpha = 0.35;
  pen.beginPath();
  for (let s = first; s <= last; s++) {
    const x = Math.max(0, at(s)), end = Math.min(nowX, at(s) + unit), high = events[s - 1].outstanding / most * tall;
    if (s === first) pen.moveTo(x, from + 6 + tall);
    pen.lineTo(x, from + 6 + tall - high);
    pen.lineTo(Math.max(x, end), from + 6 + tall - high);
    if (s === last) pen.lineTo(Math.max(x, end), from + 6 + tall);
  }
  pen.fill();
  pen.globalAlpha = 1;
  pen.textAlign = "left";
  pen.fillStyle = colourOf("--soft");
  pen.fillText(`${most} at most`, nowX + 8, from + 14);
}

// The probabilities as stacked bands, arm 1 at the bottom.
function drawRibbon(pen, events, first, last, at, unit, nowX, top, bottom) {
  for (let s = first; s <= last; s++) {
    const x = Math.max(0, at(s)), end = Math.min(nowX, at(s) + unit);
    if (end <= x) continue;
    let from = bottom;
    events[s - 1].x.forEach((chance, arm) => {
      const high = chance * (bottom - top);
      pen.fillStyle = armColour(arm);
      pen.fillRect(x, from - high, Math.min(end - x + 1, nowX - x), high); // overlaps: no seams
      from -= high;
    });
  }
}

// The legend of the arms below a strip.
function nameArms(box, K, text) {
  box.replaceChildren();
  for (let arm = 0; arm < K; arm++) {
    const item = document.createElement("span"), mark = document.createElement("i");
    mark.style.background = armColour(arm);
    item.append(mark, text(arm));
    box.append(item);
  }
}
