"""The command line. It uses every core, so JAX must not start before :func:`main` says so."""

from pathlib import Path

from jaxbandit.simulate import use_all_cores
from jaxbandit.sweep.commands import register
from jaxbandit.theory import claims
from jaxbandit.tune import register as register_tune


def main() -> None:
    try:
        from cyclopts import App
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
    def bench(
        *, out: Path = Path("bench"), quick: bool = False, peers: Path | None = None, smpybandits: Path | None = None
    ) -> None:
        """Rounds per second of the engine on pinned cores, with ratios to the peer programs that are found.

        Parameters
        ----------
        out
            Folder for bench.md, bench.json and bench.png.
        quick
            Fewer turns and only two learners: some minutes.
        peers
            Folder with more peer programs (ftrl_simd.cpp, ftrl_numba.py, ftrl_numpy.py) to time beside our own.
        smpybandits
            The Python of an environment with SMPyBandits, to time its learners.
        """
        from jaxbandit import bench

        bench.run(peers, smpybandits, out, quick)

    register(app)
    claims.register(app)
    register_tune(app)
    app()
