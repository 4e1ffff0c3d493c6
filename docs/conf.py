"""The site: ``make docs``. A public name without docstring or example, a broken link or a failing notebook ends the build."""

import os
import re
import runpy
import shutil
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes
from sphinx.errors import SphinxError
from sphinx.util import logging

import jaxbandit
from experiments.claims.harness.notation import typeset

HERE = Path(__file__).parent
LOGGER = logging.getLogger(__name__)
ADDRESS = runpy.run_path(str(HERE / "address.py"))
REPOSITORY = ADDRESS["REPOSITORY"]
# Notebooks call the `jaxbandit` command of the environment that builds the site.
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

project, author, release = "jaxbandit", "the jaxbandit authors", jaxbandit.__version__
copyright = author
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build", "playground/*", "notebooks/ipynb", "paper"]
html_theme, html_title = "furo", "jaxbandit"
html_static_path, html_css_files = ["_static"], ["site.css"]
if ADDRESS["PUBLISHED"]:
    html_theme_options = {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}
html_copy_source = False

myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 110
autodoc_preserve_defaults = True
napoleon_attr_annotations = False  # annotations of shapes such as "*runs" are not markup
napoleon_numpy_docstring = False


def as_mathml(translator, node: nodes.Element, display: str) -> None:
    """Formulas as MathML, which browsers render without a script."""
    for equation in filter(str.strip, node.astext().split("\n\n")):  # a block may hold several
        for unknown, known in (("\\arg", "\\mathrm{arg}"), ("\\Big\\", "\\")):
            equation = equation.replace(unknown, known)
        equation = re.sub(r"\\(log|min|max)\s+(?=[A-Za-z\\])", r"\\\1\\, ", equation)  # MathML sets no space after a function
        made = convert(equation, display=display)
        if "\\" in made:
            LOGGER.warning("a formula that MathML does not know: %s", equation, location=node)
        translator.body.append(made)
    raise nodes.SkipNode


def link_to_repository(app, docname: str, source: list[str]) -> None:
    """Figures from outside docs/ are part of the site; other files there are linked to the repository. Plain formulas of two
    appendix pages are typeset."""
    if docname in ("appendix/claim_protocol", "appendix/errata"):
        source[0] = typeset(source[0])
    for mark, make in (("<!-- learners -->", "learners"), ("<!-- commands -->", "commands")):
        if docname.startswith("api/") and mark in source[0]:
            source[0] = source[0].replace(mark, runpy.run_path(str(HERE / "api_tables.py"))[make]())
    above = {"": "../", "appendix": "../../"}.get(docname.rpartition("/")[0])
    if above:
        source[0] = re.sub(rf"\]\({re.escape(above)}(?![^)]*\.png\))", f"]({REPOSITORY}/blob/main/", source[0])


def enlarge_on_click(app, page: str, template: str, context: dict, doctree) -> None:
    """A picture that links to itself is shown at full size: Sphinx would offer it for download."""
    link = r'<a class="reference download internal" download="" href="[^"]*"><span class="xref download myst">(<img [^>]*src="([^"]+)"[^>]*>)</span></a>'
    if "body" in context:
        context["body"] = re.sub(link, r'<a class="enlarge" href="\2">\1</a>', context["body"])


# A letter with an index, a power, or both: d_max, K^{1/3}, γ_t, x_{t,i}^2.
FORMULA = re.compile(
    r"(?<![\w`:.^_√|])([^\W\d_])(?:_(\{[^{}]*\}|[A-Za-z0-9]+))?(?:\^(\{[^{}]*\}|[0-9]+))?(?![\w`({=.\u0304]*[\w`(\u0304])"
)


def typeset_docstring(app, what, name, obj, options, lines: list[str]) -> None:
    """Formulas in letters are typeset; |x| is an absolute value, not a substitution. Code and TeX stay as they are."""

    def formula(found: re.Match) -> str:
        letter, index, power = found.groups()
        index, power = (part and part.strip("{}") for part in (index, power))
        tex = letter + (f"_{{{index}}}" if index else "") + (f"^{{{power}}}" if power else "")
        return f":math:`{tex}`" if index or power else found[0]

    within = False  # a directive, whose lines are indented
    for place, line in enumerate(lines):
        within = (within and (not line.strip() or line.startswith(" "))) or line.lstrip().startswith(".. ")
        if not within and not line.lstrip().startswith((">>>", "...")) and ":math:" not in line and "``" not in line:
            lines[place] = FORMULA.sub(formula, line.replace("|", "\\|"))


# What JAX and NumPy call a number or an array; the union that it stands for fills three lines.
ARRAY_LIKE = re.compile(
    r"(?:~?[\w.]*\b(?:Array|ndarray|bool_?|number|int|float|complex|TypedNdArray|literals\.\w+)\b\s*\|\s*){5,}~?[\w.]+"
)


def shorten_signature(app, what, name, obj, options, signature: str | None, returns: str | None):
    """Type hints with ``ArrayLike`` instead of the union, and without module names."""

    def short(text: str | None) -> str | None:
        if text is None:
            return None
        text = ARRAY_LIKE.sub("ArrayLike", text)
        return re.sub(
            r"~?\b(?:jax|jaxlib|numpy|jaxtyping|typing|collections\.abc|pathlib|jaxbandit)\.(?:[a-z_]\w*\.)*(?=[A-Z])", "", text
        )

    return short(signature), short(returns)


def prefix_names(app, doctree) -> None:
    """``jb.simulate`` in place of ``jaxbandit.simulate``."""
    for node in doctree.findall(addnodes.desc_addname):
        if node.astext().startswith("jaxbandit."):
            node.children = [nodes.Text("jb." + node.astext().removeprefix("jaxbandit."))]


def skip_aliases(app, what, name, obj, skip: bool, options) -> bool:
    """Fields of named tuples are described in the docstring of their class; Python's own text for them says nothing."""
    return skip or str(getattr(obj, "__doc__", "")).startswith("Alias for field number")


def check_names(app) -> None:
    wrong = runpy.run_path(str(HERE / "public_names.py"))["problems"]()
    if wrong:
        raise SphinxError("public names that are not documented as they should be:\n  " + "\n  ".join(wrong))


def copy_playground(app, error) -> None:
    if error is None:
        shutil.copytree(HERE / "playground", Path(app.outdir) / "playground", dirs_exist_ok=True)


def redirect_statements(app, error) -> None:
    """claims/NAME.html, once a page of its own, leads to the part of the page that NAME is on now."""
    texts = tomllib.loads((HERE / "claims" / "statements.toml").read_text())
    slug = runpy.run_path(str(HERE / "build_claims.py"))["slug"]
    for name, text in texts.items() if error is None and app.builder.name == "html" else ():
        if name != "pages":
            place = f"{text['page']}.html#{slug(text['title'])}"
            (Path(app.outdir) / "claims" / f"{name}.html").write_text(f'<meta http-equiv="refresh" content="0; url={place}">')


def setup(app) -> None:
    app.add_node(nodes.math, override=True, html=(lambda self, node: as_mathml(self, node, "inline"), None))
    app.add_node(nodes.math_block, override=True, html=(lambda self, node: as_mathml(self, node, "block"), None))
    app.connect("builder-inited", check_names)
    app.connect("source-read", link_to_repository)
    app.connect("html-page-context", enlarge_on_click)
    app.connect("autodoc-process-docstring", typeset_docstring)
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("autodoc-skip-member", skip_aliases)
    app.connect("doctree-read", prefix_names)
    app.connect("build-finished", copy_playground)
    app.connect("build-finished", redirect_statements)
