"""The command line. It uses every core, so JAX must not start before :func:`main` says so."""

from pathlib import Path
from typing import Annotated

from jaxbandit.simulate import use_all_cores


def main() -> None:
    try:
        from cyclopts import App, Parameter
    except ImportError:
        raise SystemExit("the jaxbandit command needs: pip install 'jaxbandit[cli]'") from None

    app = App(name="jaxbandit", help="The laboratory for bandits with delayed feedback.")

    @app.command
    def demo(*, out: Path = Path(), seed: int = 0) -> None:
        """Both regimes of the paper's title in one figure, demo.png: under a minute.

        Parameters
        ----------
        out
            Folder for the figure.
        seed
            Seed of the key; run i of every learner meets the same losses.
        """
        use_all_cores()
        from jaxbandit import demo

        demo.run(out, seed)

    @app.command
    def bench(*, peers: Annotated[Path | None, Parameter(help="Folder with peer programs to time beside.")] = None) -> None:
        """Rounds per second of the engine on pinned cores, with ratios to the peer programs that are found."""
        from jaxbandit import bench

        bench.run(peers)

    app()
