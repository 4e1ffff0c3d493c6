"""The public names, and what is wrong with their documentation. The site's build and the tests both ask."""

import inspect
from pathlib import Path
from types import ModuleType

import jaxbandit as jb

THEORY = (jb.theory.bounds, jb.theory.games, jb.theory.measurements, jb.theory.optimal_skipping)
MODULES = (jb, jb.losses, jb.delays, jb.learners, jb.extend, jb.measure, jb.plots, *THEORY)
# What a user is given, or writes a class after, and does not call: a docstring is enough.
GIVEN = {
    "Bound",
    "Comparison",
    "Delays",
    "Entry",
    "Estimate",
    "Gradient",
    "Learner",
    "Log",
    "Losses",
    "RoundInfo",
    "Observation",
    "Optimum",
    "Played",
}
GIVEN |= {"FTRL", "DifferentiableLosses", "ReadsSignals", "ShowsSignals", "TakesSums"}
GIVEN |= {"AdaptiveLosses", "FullInformation", "ReadsDelays", "ReadsStages", "ShowsDelays", "ShowsStages"}
GIVEN |= {"Advice", "ImportanceWeighted", "Measurement", "Rates", "Rollout", "Round", "Ticket", "TicketError", "Tuned"}
GIVEN |= {"ReadsStages", "ShowsStages", "WorstCase"}
API = Path(__file__).parent / "api"


def public(module: ModuleType) -> dict[str, object]:
    """The classes and functions that a module offers: its ``__all__``, or what it defines without an underscore."""
    if hasattr(module, "__all__"):
        names = module.__all__
    else:
        names = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
        names = [name for name in names if not name.startswith("check_")]  # for other modules, not for users
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in found.items() if callable(value)}


def problems() -> list[str]:
    """One line for each public name without docstring, without an example, without its formula, or without a place in the API pages."""
    wrong = []
    pages = "".join(page.read_text(encoding="utf-8") for page in API.glob("*.md"))
    for module in MODULES:
        for name, value in public(module).items():
            where, text = f"{module.__name__}.{name}", _docstring(value)
            if not text:
                wrong.append(f"{where}: no docstring")
            # draw_x is shown where x is.
            elif ">>>" not in text and name not in GIVEN and not name.startswith("draw_"):
                wrong.append(f"{where}: no example (>>>)")
            if _formula_is_due(value) and not any(mark in text for mark in ("math::", ":math:", "√", "Σ", "σ_max =")):
                wrong.append(f"{where}: no formula")
            listed = (
                f":: jaxbandit.{name}\n",
                f":: {where}\n",
                f":: jaxbandit.extend.{name}\n",
                f"automodule:: {module.__name__}\n",
            )
            if not any(directive in pages.replace("()\n", "\n") for directive in listed):
                wrong.append(f"{where}: not in docs/api")
    return wrong


def _docstring(value: object) -> str:
    text = inspect.getdoc(value) or ""
    made_up = inspect.isclass(value) and text.startswith(f"{value.__name__}(")  # what dataclasses write by themselves
    return "" if made_up else text


def _formula_is_due(value: object) -> bool:
    """For bounds and rates, and for learners but those told in words: uniform play, and what only wraps another learner."""
    if value in (jb.Uniform, jb.QPMD, jb.BOLD):
        return False
    returns = inspect.signature(value).return_annotation if inspect.isfunction(value) else None
    return value in jb.REGISTRY.values() or returns in (jb.theory.bounds.Bound, jb.theory.bounds.Rates, "Bound", "Rates")
