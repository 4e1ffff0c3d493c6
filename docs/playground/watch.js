// "Watch the delay": one run, round by round, on the timeline strip.
"use strict";
const watch = { events: [], now: 0, playing: !matchMedia("(prefers-reduced-motion: reduce)").matches, last: 0, game: null, s: null };

function startWatch() {
  const s = { ...settings(), rounds: 20000 };
  Object.assign(watch, { s, game: engine.game(s, s.algorithm, 0), events: [], now: 0 });
  nameArms($("strip-arms"), s.K, (arm) => `arm ${arm + 1}` + (s.losses !== "switching" && arm === 0 ? " (best)" : ""));
  if (!watch.playing) advanceWatch(3 * s.delay + 30);
  drawWatch();
}

function advanceWatch(rounds) {
  const before = watch.now;
  watch.now = Math.min(watch.now + rounds, watch.s.rounds);
  while (watch.events.length < Math.floor(watch.now)) { watch.game.step(); addEvent(watch.events, watch.game); }
  if (watch.now === before) setPlaying(false);
}

const drawWatch = perFrame(() => {
  if (mode !== "watch" || !watch.game) return;
  drawStrip($("strip"), watch.events, watch.now, { delay: watch.s.delay });
  const t = watch.events.length, regret = t ? watch.game.regret() : 0;
  const text = `${ALGORITHMS[watch.s.algorithm].name}: regret ${regret.toFixed(1)} after ${t.toLocaleString("en")} rounds of this run.`;
  if ($("strip-status").textContent !== text) $("strip-status").textContent = text;
});

function setPlaying(playing) {
  watch.playing = playing;
  $("play").textContent = playing ? "Pause" : "Play";
}

// The strip moves at the same speed on the screen for every delay: a window of it takes the same time.
const roundsPerSecond = () => Number($("speed").value) * Math.max(1, watch.s.delay * 2.2 / 60);

function tickWatch(time) {
  const seconds = Math.min((time - watch.last) / 1000, 0.1);
  watch.last = time;
  if (mode === "watch" && watch.playing && watch.game) {
    advanceWatch(seconds * roundsPerSecond());
    drawWatch();
  }
  requestAnimationFrame(tickWatch);
}
requestAnimationFrame(tickWatch);

$("play").addEventListener("click", () => setPlaying(!watch.playing));
$("step").addEventListener("click", () => { setPlaying(false); advanceWatch(Math.floor(watch.now) + 1 - watch.now); drawWatch(); });
$("again").addEventListener("click", startWatch);
setPlaying(watch.playing);
