"""What a newcomer meets: every code block runs as pasted, every link leads somewhere, every public name is documented."""

import importlib
import json
import os
import re
import runpy
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.md"))
APPENDIX = sorted((DOCS / "appendix").glob("*.md"))
NOTES = sorted((DOCS / "notes").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")), *APPENDIX, *NOTES]


def name(path):
    return path.name


# Pages whose blocks compile much and show what other tests cover.
LONG = (
    "adding_a_law.md",
    "constants.md",
    "faq.md",
    "gradients.md",
    "gradient_estimators.md",
    "live.md",
    "settings.md",
    "sweeps.md",
    "theory.md",
)


@pytest.mark.parametrize(
    "page", [pytest.param(page, id=page.name, marks=[pytest.mark.thorough] * (page.name in LONG)) for page in PAGES]
)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), names)


@pytest.mark.parametrize(
    "page", [*PAGES, *NOTEBOOKS, *sorted((DOCS / "api").glob("*.md")), *sorted((DOCS / "claims").glob("*.md"))], ids=name
)
def test_links_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text()):
        if "://" in target:
            continue
        found = (page.parent / target).resolve() if target else page
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            headings = re.findall(r"^#+ (.+)$", found.read_text(), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in slugs, f"{target}#{anchor}"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "SECURITY.md", *NOTEBOOKS, *sorted((DOCS / "claims").glob("*.md"))], ids=name)
def test_files_that_commands_name_are_there(page):
    for path in re.findall(r"(?<![\w/.-])((?:tests|experiments|docs|jaxbandit)/[\w*./-]*\w)", page.read_text()):
        assert "_build" in path or any(ROOT.glob(path)), path


def test_all_files_have_the_same_address():
    address = runpy.run_path(str(DOCS / "address.py"))["REPOSITORY"]
    files = [
        *PAGES,
        *NOTEBOOKS,
        ROOT / "CITATION.cff",
        ROOT / "pyproject.toml",
        ROOT / "SECURITY.md",
        *(DOCS / "notebooks" / "ipynb").glob("*.ipynb"),
    ]
    place = r"https://(?:colab\.research\.google\.com/github|(?:raw\.githubusercontent|github)\.com)/([\w.-]+/[\w-]+)"
    found = {(path.name, name) for path in files for name in re.findall(place, path.read_text())}
    assert {path for path, _ in found} >= {"README.md", "CITATION.cff", "01_quickstart.ipynb"}
    assert {(path, name) for path, name in found if f"https://github.com/{name}" != address} == set()


def test_every_page_is_in_the_table_of_contents():
    listed = set()
    for page in (DOCS / "index.md", DOCS / "api" / "index.md"):
        for tree in re.findall(r"```{toctree}\n(.*?)```", page.read_text(), re.DOTALL):
            lines = [line.strip() for line in tree.splitlines()]
            listed |= {(page.parent / f"{line}.md").resolve() for line in lines if line and not line.startswith(":")}
    pages = {*DOCS.glob("*.md"), *DOCS.glob("api/*.md"), *NOTEBOOKS} - {DOCS / "index.md"}
    assert listed == pages


def test_every_public_name_is_documented():
    assert runpy.run_path(str(DOCS / "public_names.py"))["problems"]() == []


@pytest.mark.parametrize(
    "module", ["", ".losses", ".delays", ".learners", ".measure", ".plots", ".theory.bounds", ".theory.measurements"]
)
def test_a_name_without_documentation_is_found(module, monkeypatch):
    def bare(): ...

    def told():
        """A docstring, and no example."""

    where = importlib.import_module(f"jaxbandit{module}")
    for added in (bare, told):
        added.__module__ = where.__name__
        monkeypatch.setattr(where, added.__name__, added, raising=False)
    if hasattr(where, "__all__"):
        monkeypatch.setattr(where, "__all__", [*where.__all__, "bare", "told"])
    found = runpy.run_path(str(DOCS / "public_names.py"))["problems"]()
    assert {f"{where.__name__}.bare: no docstring", f"{where.__name__}.told: no example (>>>)"} <= set(found)


def test_the_readme_is_a_first_page():
    import jaxbandit as jb

    text = (ROOT / "README.md").read_text()
    assert len(re.sub(r"[|#*`·-]", " ", text).split()) <= 600
    table = text[text.index("## Algorithms") : text.index("## Speed")]
    rows = re.findall(r"^\| `(\w+)`", table, re.MULTILINE)
    assert len(rows) <= 12
    assert [name for name in rows if not hasattr(jb, name)] == []
    count = len(set(jb.REGISTRY.values()))
    assert f"has {count} algorithms" in text
    assert f"{count} algorithms" in (DOCS / "index.md").read_text()


def test_every_learner_and_model_is_in_the_catalogue():
    import jaxbandit as jb

    text = (DOCS / "algorithms.md").read_text()
    table = text[text.index("## General-purpose algorithms") : text.index("## Loss models")]
    assert [cls.__name__ for cls in jb.REGISTRY.values() if f"`{cls.__name__}`" not in table] == []
    rows = table.splitlines()
    recalled = [cls.__name__ for cls in jb.REGISTRY.values() if "recalled, not checked" in " ".join((cls.__doc__ or "").split())]
    assert [name for name in recalled if not any(f"`{name}`" in row and "[R]" in row for row in rows)] == []
    for module in (jb.losses, jb.delays):
        missing = [law.__name__ for law in module.REGISTRY.values() if f"`{law.__name__}`" not in text]
        assert missing == []


def test_citation_has_this_version():
    import jaxbandit as jb

    version = jb.__version__.partition(".dev")[0]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_conda_recipe_has_this_version_and_these_dependencies():
    import jaxbandit as jb

    recipe = (ROOT / ".github" / "conda" / "meta.yaml").read_text()
    assert f'version = "{jb.__version__.partition(".dev")[0]}"' in recipe
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in ("plot", "data") for one in project["optional-dependencies"][extra])]
    listed = dict(re.findall(r"^    - ([\w-]+) >=([\d.]+)$", recipe, re.MULTILINE))
    for name, lowest in (one.split(">=") for one in wanted):
        assert listed[{"matplotlib": "matplotlib-base"}.get(name, name.lower())] == lowest


def test_notebooks_for_colab_are_up_to_date():
    built = runpy.run_path(str(DOCS / "build_notebooks.py"))
    assert {path.stem for path in built["BUILT"].glob("*.ipynb")} == {path.stem for path in NOTEBOOKS}
    for source in NOTEBOOKS:
        stored = nbformat.read(built["BUILT"] / f"{source.stem}.ipynb", 4)
        assert built["stripped"](stored) == built["stripped"](built["build"](source)), "run python docs/build_notebooks.py"


@pytest.mark.parametrize("source", NOTEBOOKS, ids=name)
def test_notebooks_have_outputs_and_no_checks(source):
    """Colab shows results before anything runs, no assertions, and nothing of the machine that made them."""
    text = (source.parent / "ipynb" / f"{source.stem}.ipynb").read_text()
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells[1:])
    assert sum(len(cell["outputs"]) for cell in cells) >= 3
    assert not any(line.startswith("assert ") for cell in cells for line in cell["source"])
    assert not re.search(r"/(?:work|home|root|tmp)/", text)
    assert "Run time" in source.read_text()[:700]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(NOTEBOOKS[0], marks=pytest.mark.thorough),
        *(pytest.param(path, marks=pytest.mark.slow) for path in NOTEBOOKS[1:]),
    ],
    ids=name,
)
def test_notebook_shows_what_it_says(source, tmp_path, monkeypatch):
    import jupytext
    import nbclient

    notebook = jupytext.read(source, fmt="md:myst")
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert "assert " in code[-1]  # it checks its own results
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.delenv("PJRT_NPROC")  # a notebook starts JAX as a user's would
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=where).execute()


@pytest.mark.slow
def test_install_cell_works_in_a_clean_environment(tmp_path):
    """The first cell of a Colab notebook, with this checkout as the address, and then the rest of that notebook."""
    cells = json.loads((DOCS / "notebooks" / "ipynb" / "01_quickstart.ipynb").read_text())["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    arguments = re.search(r'^%pip install --quiet "(jaxbandit\[[\w,]+\]) @ git\+https://[\w./]+"$', code[0], re.MULTILINE)
    assert arguments is not None
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", f"{arguments[1]} @ {ROOT.as_uri()}"]
    subprocess.run(install, check=True, timeout=900)
    script = "\n".join(line for cell in code[1:] for line in cell.splitlines() if not line.startswith("%"))
    (tmp_path / "notebook.py").write_text(script)
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PJRT_NPROC", "VIRTUAL_ENV")}
    done = subprocess.run([python, "notebook.py"], cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    assert "bitwise identical to an uninterrupted run: True" in done.stdout
    where = subprocess.run(
        [python, "-c", "import jaxbandit; print(jaxbandit.__file__)"], cwd=tmp_path, capture_output=True, text=True
    )
    assert str(tmp_path / "env") in where.stdout  # the installed package, not the checkout


@pytest.mark.slow
def test_site_builds_without_warnings(tmp_path):
    """All pages, the API from the docstrings and the check of public names; the notebooks have tests of their own."""
    options = ["-W", "--keep-going", "-q", "-b", "html", "-D", "nb_execution_mode=off"]
    command = [sys.executable, "-m", "sphinx", *options, str(DOCS), str(tmp_path / "html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "playground" / "index.html").exists()
    broken = []
    for page in (tmp_path / "html").rglob("*.html"):
        for target in re.findall(r'(?:href|src)="([^"#:?]+)(?:[#?][^"]*)?"', page.read_text()):
            if not (page.parent / target).resolve().exists():
                broken.append(f"{page.name}: {target}")
    assert broken == []


@pytest.mark.slow
def test_a_learner_from_the_page_alone_works_in_a_sweep(tmp_path):
    """The first code block of adding_a_learner.md as a file of its own, named in a TOML spec, from the command line."""
    page = (DOCS / "adding_a_learner.md").read_text()
    (tmp_path / "greedy.py").write_text(re.search(r"```python\n(.*?)```", page, re.DOTALL)[1])
    (tmp_path / "spec.toml").write_text(
        'rounds = 200\nruns = 16\n[[learners]]\nname = "greedy:EpsilonGreedy"\ngrid = { epsilon = [0.1, 1.0] }\n'
        '[[losses]]\nname = "bernoulli"\nmeans = [0.25, 0.75]\n[[delays]]\nname = "fixed"\ndelay = 5\n'
    )
    assert tomllib.loads((tmp_path / "spec.toml").read_text())["learners"][0]["name"] == "greedy:EpsilonGreedy"
    jaxbandit = str(Path(sys.executable).parent / "jaxbandit")
    command = [jaxbandit, "sweep", "spec.toml", "--out", "results", "--imports"]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": "."}, check=True, timeout=300)

    import jaxbandit as jb

    final = jb.open_sweep(tmp_path / "results").regret.isel(round=-1).mean("run").squeeze()
    assert float(final[1]) == pytest.approx(0.25 * 200, rel=1e-5)  # epsilon 1 is uniform play
    assert float(final[0]) < 0.5 * float(final[1])
