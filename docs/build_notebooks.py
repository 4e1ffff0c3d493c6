"""Build the notebooks for Colab, ``docs/notebooks/ipynb/*.ipynb``, with outputs, from the Markdown beside them.

    python docs/build_notebooks.py           # executes the notebooks whose code changed
    python docs/build_notebooks.py --all     # executes all of them

Each gets a badge and a cell that installs the package. Cells tagged ``remove-cell`` check the results; they are left out.
"""

import argparse
import copy
import os
import re
import runpy
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell

SOURCES = Path(__file__).parent / "notebooks"
BUILT = SOURCES / "ipynb"
REPOSITORY = runpy.run_path(str(Path(__file__).parent / "address.py"))["REPOSITORY"]
NAME = REPOSITORY.removeprefix("https://github.com/")
COLAB = f"https://colab.research.google.com/github/{NAME}/blob/main/docs/notebooks/ipynb"
INSTALL = f"""# From a clone, replace the address: %pip install --quiet ".[cli,data]"
%pip install --quiet "jaxbandit[cli,data] @ git+{REPOSITORY}\""""


def build(source: Path) -> nbformat.NotebookNode:
    """The notebook of one Markdown file, without outputs."""
    notebook = jupytext.read(source, fmt="md:myst")
    badge = f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({COLAB}/{source.stem}.ipynb)"
    shown = [cell for cell in notebook.cells if "remove-cell" not in cell.metadata.get("tags", [])]
    notebook.cells = [new_markdown_cell(badge), new_code_cell(INSTALL), *shown]
    for index, cell in enumerate(notebook.cells):
        cell.id = f"cell-{index}"
        if cell.cell_type == "markdown":
            own_pages = re.sub(r"\]\((\d\d_\w+)\.md\)", r"](\1.ipynb)", cell.source)
            cell.source = own_pages.replace("](../", f"]({REPOSITORY}/blob/main/docs/")
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return notebook


def execute(notebook: nbformat.NotebookNode) -> None:
    """Run all cells but the installation, in an empty folder, and keep their outputs; what goes to stderr is dropped."""
    install, badge = notebook.cells.pop(1), notebook.cells.pop(0)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=900, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)
            if cell.cell_type == "code":
                kept = [output for output in cell.outputs if output.get("name") != "stderr"]
                cell.outputs = [_without_paths(output, folder) for output in kept]
    notebook.cells[:0] = [badge, install]
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}


def _without_paths(output: nbformat.NotebookNode, folder: str) -> nbformat.NotebookNode:
    """The output without the names of this machine's folders."""
    for place in (folder, str(Path(__file__).parents[1]), sys.prefix, tempfile.gettempdir()):
        if "text" in output:
            output.text = output.text.replace(place, "…")
        for kind, value in output.get("data", {}).items():
            if isinstance(value, str) and kind.startswith("text/"):
                output.data[kind] = value.replace(place, "…")
    return output


def reuse(fresh: nbformat.NotebookNode, stored: nbformat.NotebookNode) -> bool:
    """Take over the outputs of a stored notebook with the same code; False if the code changed or was never executed."""
    pairs = [[cell for cell in one.cells if cell.cell_type == "code"] for one in (fresh, stored)]
    if [cell.source for cell in pairs[0]] != [cell.source for cell in pairs[1]] or not all(
        cell.execution_count for cell in pairs[1][1:]
    ):
        return False
    for new, old in zip(*pairs, strict=True):
        new.outputs, new.execution_count = old.outputs, old.execution_count
    return True


def stripped(notebook: nbformat.NotebookNode) -> str:
    """The text of a notebook without outputs."""
    bare = copy.deepcopy(notebook)
    for cell in bare.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return nbformat.writes(bare)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="execute all notebooks")
    options = parser.parse_args()
    BUILT.mkdir(exist_ok=True)
    sources = sorted(SOURCES.glob("*.md"))
    for source in sources:
        fresh, file = build(source), BUILT / f"{source.stem}.ipynb"
        begun = time.perf_counter()
        if options.all or not file.exists() or not reuse(fresh, nbformat.read(file, 4)):
            execute(fresh)
            print(f"{source.stem}: {time.perf_counter() - begun:.0f} s", flush=True)
        file.write_text(nbformat.writes(fresh) + "\n", encoding="utf-8")
    for stale in {path.stem for path in BUILT.glob("*.ipynb")} - {path.stem for path in sources}:
        (BUILT / f"{stale}.ipynb").unlink()


if __name__ == "__main__":
    main()
