"""The frontier between stochastic and worst-case regret for one (K, d, T): a table, a figure, and all searched tables.

    python -m experiments.frontier --out FOLDER [--arms 2] [--delay 20] [--rounds 5000] [--budget 1] [--processes 2] [--only Tapered] [--draw]

One search of the same budget for each learner. Then each learner plays the tables found for all others.
What is in FOLDER is not computed again.
"""

import argparse
import concurrent.futures
import itertools
import json
import multiprocessing
from pathlib import Path

from experiments.frontier.curves import curves
from experiments.frontier.figure import draw, table
from experiments.frontier.searches import one_search
from jaxbandit._io.files import write_whole


def setting(arguments: argparse.Namespace) -> dict[str, int]:
    return {name: getattr(arguments, name) for name in ("arms", "delay", "rounds", "budget")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    for name, default in (("arms", 2), ("delay", 20), ("rounds", 5000), ("budget", 1), ("processes", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--draw", action="store_true", help="draw what is there, search nothing")
    parser.add_argument("--only", default="", help="curves whose name contains this")
    arguments = parser.parse_args()
    given, out = setting(arguments), arguments.out
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "results.json"
    done = json.loads(kept.read_text()) if kept.exists() else {"setting": given, "rows": []}
    if done["setting"] != given:
        raise SystemExit(f"{kept} is of {done['setting']}, not of {given}; choose another --out")
    chosen = {curve: one for curve, one in curves(given["delay"], given["rounds"]).items() if arguments.only in curve}
    # The first point of every curve, then the second, ...: an interrupted run has some of each.
    in_turn = itertools.zip_longest(*([(curve, point) for point in one.points] for curve, one in chosen.items()))
    todo = [which for turn in in_turn for which in turn if which is not None]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(arguments.processes, mp_context=context) as pool:
        for stage in () if arguments.draw else (1, 2):
            known = {(row["curve"], row["point"], row["stage"]) for row in done["rows"]}
            waiting = [
                pool.submit(one_search, out, *given.values(), *which, stage) for which in todo if (*which, stage) not in known
            ]
            for future in concurrent.futures.as_completed(waiting):
                row = future.result()
                done["rows"].append(row)
                write_whole(kept, json.dumps(done, indent=1).encode())
                print(f"{row['stage']}  {row['curve']:38s}{row['point']:24s} S {row['S']:7.1f}  W {row['W']:7.1f}", flush=True)
    draw(done, out / "frontier.png")
    write_whole(out / "table.md", table(done))


if __name__ == "__main__":
    main()
