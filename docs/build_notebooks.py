"""Build the notebooks for Colab, ``docs/notebooks/ipynb/*.ipynb``, from the Markdown beside them.

    python docs/build_notebooks.py

Each gets a badge and a cell that installs the package. They hold no outputs: the site has them.
"""

import re
import runpy
from pathlib import Path

import jupytext
import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

SOURCES = Path(__file__).parent / "notebooks"
BUILT = SOURCES / "ipynb"
REPOSITORY = runpy.run_path(str(Path(__file__).parent / "address.py"))["REPOSITORY"]
NAME = REPOSITORY.removeprefix("https://github.com/")
COLAB = f"https://colab.research.google.com/github/{NAME}/blob/main/docs/notebooks/ipynb"
INSTALL = f'%pip install --quiet "jaxbandit[cli,data] @ git+{REPOSITORY}"'


def build(source: Path) -> str:
    """The notebook of one Markdown file, as it is written."""
    notebook = jupytext.read(source, fmt="md:myst")
    badge = f"[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]({COLAB}/{source.stem}.ipynb)"
    notebook.cells[:0] = [new_markdown_cell(badge), new_code_cell(INSTALL)]
    for index, cell in enumerate(notebook.cells):
        cell.id = f"cell-{index}"
        if cell.cell_type == "markdown":
            own_pages = re.sub(r"\]\((\d\d_\w+)\.md\)", r"](\1.ipynb)", cell.source)
            cell.source = own_pages.replace("](../", f"]({REPOSITORY}/blob/main/docs/")
    notebook.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return nbformat.writes(notebook) + "\n"


def main() -> None:
    BUILT.mkdir(exist_ok=True)
    sources = sorted(SOURCES.glob("*.md"))
    for source in sources:
        (BUILT / f"{source.stem}.ipynb").write_text(build(source), encoding="utf-8")
    for stale in {path.stem for path in BUILT.glob("*.ipynb")} - {path.stem for path in sources}:
        (BUILT / f"{stale}.ipynb").unlink()


if __name__ == "__main__":
    main()
