"""Draws docs/architecture.png from docs/layers.py:  python docs/build_architecture.py"""

import runpy
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).parent
SHADES = ("#DCEAF5", "#E8F3EC", "#FBEBDD")


def main() -> None:
    layers = runpy.run_path(str(HERE / "layers.py"))["LAYERS"]
    figure = Figure(figsize=(11, 0.42 * len(layers) + 0.5), layout="constrained")
    panel = figure.subplots()
    panel.set(xlim=(-3.5, 15.2), ylim=(-len(layers) + 0.3, 0.8))
    panel.set_axis_off()
    for place, (title, modules, words) in enumerate(layers):
        panel.text(-0.2, -place, title, ha="right", va="center", fontsize=10, weight="bold")
        at = 0.0
        for module in modules:
            name = module or "__init__"
            width = 0.5 + 0.145 * len(name)
            panel.add_patch(_box(at, -place, width, SHADES[place % len(SHADES)]))
            panel.text(at + width / 2, -place, name, ha="center", va="center", fontsize=9, family="monospace")
            at += width + 0.15
        panel.text(max(at + 0.1, 3.2), -place, words, va="center", fontsize=8.5, color="0.35")
    panel.annotate("", (-3.3, 0.4), (-3.3, -len(layers) + 0.6), arrowprops={"arrowstyle": "->", "color": "0.35"})
    panel.text(-3.45, -len(layers) / 2, "imports point up", rotation=90, ha="right", va="center", fontsize=9, color="0.35")
    figure.savefig(HERE / "architecture.png", dpi=130)


def _box(x: float, y: float, width: float, colour: str) -> FancyBboxPatch:
    return FancyBboxPatch(
        (x, y - 0.24), width, 0.48, boxstyle="round,pad=0.02", facecolor=colour, edgecolor="0.55", linewidth=0.8
    )


if __name__ == "__main__":
    main()
