"""A recording of the timeline strip for README and site: ``python -m experiments.playground.record``.

Writes ``docs/delay_strip.svg``, an animation without scripts that follows the reader's light or dark theme, and, with Chromium and
Playwright, ``docs/playground/og.png``, the picture that is shown where a link to the playground is shared. The run is one of the
library: Tsallis-INF as a live agent, four arms, every observation delayed by twelve rounds.
"""

import shutil
from pathlib import Path
from typing import NamedTuple

import numpy as np

import jaxbandit as jb

DOCS = Path(__file__).parents[2] / "docs"
ARMS, DELAY, ROUNDS, SECONDS = 4, 12, 110, 16.0
WIDTH, HEIGHT, NOW, UNIT = 860, 360, 716, 12.0  # NOW: where the present is, in pixels; UNIT: pixels per round
TOP, FLOOR, SIGMA, RIBBON, BOTTOM = 44, 176, 232, 262, 348  # heights of the lanes
RADIUS, CELL = 4.6, 17


class Recorded(NamedTuple):
    """One run: arm, loss and probabilities of each round."""

    arms: np.ndarray  # [T]
    losses: np.ndarray  # [T]
    probabilities: np.ndarray  # [T, K]


def play(seed: int = 3) -> Recorded:
    """A live agent whose observations arrive at the end of round t + DELAY."""
    rng, means = np.random.default_rng(seed), np.array([0.25, *[0.6] * (ARMS - 1)])
    agent = jb.Agent(jb.TsallisINF(), ARMS, seed=seed)
    tickets, losses, probabilities = [], [], []
    for t in range(ROUNDS):
        tickets.append(agent.act())
        probabilities.append(agent.probabilities)  # with which this action was drawn
        losses.append(int(rng.random() < means[int(tickets[-1].arm)]))
        if t >= DELAY:
            agent.observe(tickets[t - DELAY].id, loss=float(losses[t - DELAY]))
    return Recorded(np.array([int(ticket.arm) for ticket in tickets]), np.array(losses), np.array(probabilities))


def percent(round: float) -> str:
    """The moment of the loop at which a round is reached."""
    return f"{100 * np.clip(round / ROUNDS, 0, 1):.2f}%"


def window(name: str, begin: float, end: float, fall: float = 0.0) -> str:
    """Keyframes of something that is visible from one round to another and falls by so many pixels meanwhile."""
    until = min(end, ROUNDS)
    top, bottom = "transform: translateY(0)", f"transform: translateY({fall * (until - begin) / (end - begin):.1f}px)"
    hidden = f"{percent(end + 0.02)}, 100% {{ opacity: 0; {bottom} }}" if end < ROUNDS else ""
    return (
        f"@keyframes {name} {{ 0%, {percent(begin - 0.02)} {{ opacity: 0; {top} }} {percent(begin)} {{ opacity: 1; {top} }} "
        f"{percent(until)} {{ opacity: 1; {bottom} }} {hidden} }}"
    )


def world(run: Recorded) -> list[str]:
    """Everything that scrolls: actions, trails, observations, the number of outstanding observations, probabilities."""
    steps = "".join(f"V{SIGMA - 18 * min(t - 1, DELAY) / DELAY:.1f}H{(t + 1) * UNIT:g}" for t in range(1, ROUNDS + 1))
    parts = [f'<path class="sigma" d="M{UNIT} {SIGMA}{steps}V{SIGMA}Z"/>']
    for t, (arm, loss) in enumerate(zip(run.arms, run.losses, strict=True), 1):
        x, lands, colour = t * UNIT, (t + DELAY + 0.5) * UNIT, jb.plots.COLOURS[arm]
        parts.append(f'<path d="M{x:.1f} {TOP}L{lands:.1f} {FLOOR}" stroke="{colour}" stroke-opacity=".5"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{TOP}" r="{RADIUS}" fill="{colour}"/>')
        ring = f'fill="{colour}"' if loss else f'fill="none" stroke="{colour}" stroke-width="2.2"'
        parts.append(f'<circle cx="{lands:.1f}" cy="{FLOOR}" r="{RADIUS - (0 if loss else 0.8):.1f}" {ring}/>')
        below = BOTTOM
        for place, chance in enumerate(run.probabilities[t - 1]):
            high = chance * (BOTTOM - RIBBON)
            below -= high
            size = f'y="{below:.1f}" width="{UNIT + 0.4}" height="{high:.1f}"'
            parts.append(f'<rect x="{x:.1f}" {size} fill="{jb.plots.COLOURS[place]}"/>')
    return parts


def svg(run: Recorded) -> str:
    """The animation; the present stands still, the past scrolls to the left."""
    rules, moving = [], []
    for t, arm in enumerate(run.arms, 1):
        colour = jb.plots.COLOURS[arm]
        rules.append(window(f"f{t}", t, t + DELAY + 0.5, FLOOR - TOP))
        moving.append(f'<circle cx="{NOW}" cy="{TOP}" r="{RADIUS + 0.8}" fill="{colour}" class="m" style="animation-name:f{t}"/>')
        slot = (t - 1) % DELAY
        x, y = NOW + 34 + (slot % 4) * CELL, FLOOR - CELL * (slot // 4)
        rules.append(window(f"p{t}", t + 0.5, t + DELAY + 0.5))
        moving.append(f'<circle cx="{x}" cy="{y}" r="{CELL * 0.4:.1f}" fill="{colour}" class="m" style="animation-name:p{t}"/>')
    for count in range(DELAY + 1):
        end = count + 1.5 if count < DELAY else ROUNDS + 1
        rules.append(window(f"n{count}", max(count + 0.5, 0.04), end))
        moving.append(f'<text x="{NOW + 26}" y="{TOP - 18}" class="m" style="animation-name:n{count}">σₜ = {count}</text>')
    loop = f"{SECONDS:g}s linear infinite"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
<title>Each action emits a dot that lands as an observation {DELAY} rounds later; outstanding observations pile up.</title>
<style>
svg {{ --ink: #57606a; --line: #d0d7de; --accent: #0072B2; }}
@media (prefers-color-scheme: dark) {{ svg {{ --ink: #9ba5b0; --line: #3a424c; --accent: #56B4E9; }} }}
text {{ fill: var(--ink); font: 14px system-ui, sans-serif; }}
.lane {{ stroke: var(--line); }} .now {{ stroke: var(--ink); }} .sigma {{ fill: var(--accent); opacity: .4; }}
.world {{ animation: scroll {loop}; }}
.m {{ opacity: 0; animation: {loop}; }}
@keyframes scroll {{ from {{ transform: translateX({NOW}px) }} to {{ transform: translateX({NOW - ROUNDS * UNIT:g}px) }} }}
@media (prefers-reduced-motion: reduce) {{ .world, .m {{ animation-play-state: paused; animation-delay: -{0.7 * SECONDS:g}s; }} }}
{chr(10).join(rules)}
</style>
<clipPath id="past"><rect width="{NOW}" height="{HEIGHT}"/></clipPath>
<path class="lane" d="M0 {TOP}H{NOW}M0 {FLOOR}H{NOW}"/>
<g clip-path="url(#past)"><g class="world" fill="none">
{chr(10).join(world(run))}
</g></g>
<path class="now" d="M{NOW} {TOP - 14}V{FLOOR + 14}"/>
{chr(10).join(moving)}
<text x="6" y="{TOP - 18}">actions (colour: arm)</text>
<text x="6" y="{FLOOR + 26}">observed feedback, delayed by {DELAY} rounds (● loss 1, ○ loss 0)</text>
<text x="{NOW + 12}" y="{SIGMA - 4}">outstanding</text>
<text x="{NOW + 12}" y="{RIBBON + 48}">probabilities</text>
</svg>
"""


def preview(animation: str, target: Path) -> None:
    """The picture for shared links: 1200 × 630 pixels, the animation at two thirds of its length."""
    from playwright.sync_api import sync_playwright

    page = f"""<body style="margin:0;padding:48px 60px;background:#fff;font-family:system-ui,sans-serif;color:#1b1f24">
    <h1 style="font-size:54px;margin:0">What delayed feedback costs</h1>
    <p style="font-size:27px;margin:6px 0 18px;color:#57606a">jaxbandit playground: watch, compare, be the adversary, be the learner</p>
    <style>svg {{ width: 1080px }} .world, .m {{ animation-play-state: paused !important; animation-delay: -{0.7 * SECONDS}s !important }}</style>
    {animation}</body>"""
    found = next((shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome") if shutil.which(name)), None)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        sheet = browser.new_page(viewport={"width": 1200, "height": 630})
        sheet.set_content(page)
        sheet.screenshot(path=target)
        browser.close()


def main() -> None:
    animation = svg(play())
    (DOCS / "delay_strip.svg").write_text(animation, encoding="utf-8")
    print(f"written: docs/delay_strip.svg, {len(animation.encode()) / 1000:.0f} kB")
    preview(animation, DOCS / "playground" / "og.png")
    print("written: docs/playground/og.png")


if __name__ == "__main__":
    main()
