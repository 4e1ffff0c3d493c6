"""``jaxbandit tune``: the learners of a spec, tuned."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optax

from jaxbandit._core.fields import field_values, show, suggest
from jaxbandit._io.files import write_whole
from jaxbandit.cli.options import Flag, check_folder, check_new, importable
from jaxbandit.gradients import tuning
from jaxbandit.gradients.record import nulls_for_nan
from jaxbandit.sweeps.reader import SpecReader, read_toml
from jaxbandit.sweeps.spec import ORACLE, AxisPoint

SETTINGS = ("steps", "runs", "only", "constraints", "goal", "tolerance", "estimator", "fresh_runs", "rate", "audit")


def tune(spec: Path, /, *, out: Path | None = None, force: Flag = False, imports: Flag = False) -> None:
    """Tune the hyperparameters of each learner of a spec by the gradient of its regret; report regret on fresh runs.

    Example: jaxbandit tune spec.toml --out tuned

    Parameters
    ----------
    spec
        TOML file as for `jaxbandit sweep`, with a table [tune] of arguments of jb.tune: steps, runs, only, constraints (a table, hyperparameter = "positive", "simplex" or "real"), goal, tolerance, estimator, fresh_runs, rate (of Adam), audit.
    out
        Folder for tuned.json with the tuned values, the path and the regrets. Steps are kept there meanwhile: the same command resumes after an interruption.
    force
        Replace files that are already there.
    imports
        Allow the spec to name learners of your own as "module:Class"; this runs that module.
    """
    if out is not None:
        check_folder(out)
        check_new([out / "tuned.json"], force)
    if imports:
        importable()
    learners, laws, options, seed = _read(spec, imports)
    written = {}
    files = [None if out is None else out / f"unfinished-{place}.json" for place in range(len(learners))]
    for setting, file in zip(learners, files, strict=True):
        tuned = tuning.tune(setting.object, *laws, seed=seed, file=file, progress=True, **options)
        print(f"{setting.label}: {tuned}")
        written[setting.label] = {
            "values": {name: np.asarray(value).tolist() for name, value in tuned.values().items()},
            "before": [tuned.before.value, tuned.before.error],
            "after": [tuned.after.value, tuned.after.error],
            "worse": tuned.worse,
            "audit agrees": None if tuned.audit is None else tuned.audit.agrees,
            "path": {name: values.tolist() for name, values in tuned.path.items()},
        }
    if out is not None:
        write_whole(out / "tuned.json", json.dumps(nulls_for_nan(written), indent=1))
    for file in filter(None, files):
        file.unlink()


def _read(spec: Path, imports: bool) -> tuple[list[AxisPoint], tuple[list[Any], list[Any]], dict[str, Any], int]:
    """Learners, the models of the tasks, other arguments of ``tune``, and the seed; all problems are reported at once."""
    document = read_toml(spec)
    settings = document.pop("tune", {})
    reader = SpecReader({"runs": 512, **document}, imports)
    reader.name, reader.folder = str(spec), spec.resolve().parent
    if not isinstance(settings, Mapping):
        reader.problem("tune", f"{show(settings)} is not a table; write [tune] above its settings")
        settings = {}
    for name in settings:
        if name not in SETTINGS:
            reader.problem(f"tune.{name}", f"this is not a setting of tune; {suggest(name, SETTINGS)}")
    learners, losses, delays = (reader.points(axis) for axis in ("learners", "losses", "delays"))
    for setting in (*learners, *losses, *delays):
        for name, value in field_values(setting.object).items():
            if isinstance(value, str) and value == ORACLE:
                reader.problem(f"{setting.path}.{name}", "tune needs a number here, not 'oracle'")
    reader.check_seed()
    audit = settings.get("audit", True)
    if not isinstance(audit, bool):
        reader.problem("tune.audit", f"{show(audit)} is not true or false")
    if reader.spec.rounds is None:
        reader.problem("rounds", "this field is needed: the number of rounds, such as 20_000")
    rate = settings.get("rate")
    if rate is not None and (not isinstance(rate, int | float) or isinstance(rate, bool) or not 0 < rate < 100):
        reader.problem("tune.rate", f"{show(rate)} is not a rate of Adam, a number above 0 such as 0.5")
    reader.finish()
    options = {"rounds": reader.spec.rounds, "runs": reader.spec.runs, **settings}
    laws = [one.object for one in losses], [one.object for one in delays]
    checked = {name: value for name, value in options.items() if name not in ("rate", "audit")}
    for setting in learners:
        try:
            tuning.check_tune(setting.object, *laws, **checked)
        except (ValueError, TypeError) as error:
            reader.problem("" if len(learners) == 1 else setting.path, str(error))
    reader.finish()
    if (rate := options.pop("rate", None)) is not None:
        options["optimizer"] = optax.adam(optax.cosine_decay_schedule(rate, options.get("steps", 40)))
    return learners, laws, options, reader.spec.seed
