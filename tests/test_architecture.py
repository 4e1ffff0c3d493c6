"""The structure of the package, read from the source without importing it.

The direction of imports between layers is a contract of import-linter (pyproject.toml); these tests cover what it does not:
cycles between modules, private names, probing by name, annotations, the public entries and the drawing.
"""

import ast
import functools
import itertools
import pkgutil
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "jaxbandit"

DOCS = PACKAGE.parent / "docs"
MOST_PUBLIC = 20  # entries at the top of the package
MOST_PROBES = 5


class Import(NamedTuple):
    importer: str
    imported: str  # a module of the package
    names: tuple[str, ...]  # what is taken from it
    line: int
    lazy: bool  # inside a function, or for the type checker only


def modules() -> dict[str, Path]:
    """``{"jaxbandit._engine.game": file}``, packages by their own name."""
    found = {}
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(PACKAGE.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@functools.cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def imports(module: str, file: Path) -> Iterator[Import]:
    """All imports of modules of the package."""
    known = modules()

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = lazy or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            inside = inside or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
            if isinstance(child, ast.Import):
                yield from (Import(module, a.name, (), child.lineno, lazy) for a in child.names if a.name in known)
            elif isinstance(child, ast.ImportFrom) and child.module:
                assert child.level == 0, f"{file}:{child.lineno}: imports are absolute"
                submodules = [a.name for a in child.names if f"{child.module}.{a.name}" in known]
                names = tuple(a.name for a in child.names if a.name not in submodules)
                yield from (Import(module, f"{child.module}.{name}", (), child.lineno, lazy) for name in submodules)
                if names and child.module in known:
                    yield Import(module, child.module, names, child.lineno, lazy)
            else:
                yield from visit(child, inside)

    return visit(tree(file), False)


@functools.cache
def all_imports() -> list[Import]:
    return [one for module, file in modules().items() for one in imports(module, file)]


def told(found: Iterator[str] | list[str]) -> None:
    problems = sorted(found)
    assert not problems, "\n" + "\n".join(problems)


def test_the_drawing_shows_the_tree():
    """Every part of every layer, with its modules."""
    build = runpy.run_path(str(DOCS / "build_architecture.py"))
    assert build["DRAWING"].read_text(encoding="utf-8") == build["draw"](), "run python docs/build_architecture.py"
    parts = {[*module.split("."), ""][1] for module in modules()} - {""}
    assert {part for layer in build["layers"]() for part in layer} == parts


def test_few_public_entries():
    entries = {path.stem for path in PACKAGE.iterdir() if path.suffix in ("", ".py")}
    assert len({name for name in entries if not name.startswith("_")}) <= MOST_PUBLIC


def test_the_page_names_only_what_is_there():
    """Every file and module that docs/architecture.md names in code letters exists."""
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`((?:jaxbandit/|experiments/|tests/|docs/)?[a-z_0-9/]+\.(?:py|md|toml))`", page))
    known = {path.relative_to(root).as_posix() for root in (PACKAGE.parent, PACKAGE) for path in root.rglob("*.*")}
    assert len(files) > 10
    told(f"docs/architecture.md names {name}" for name in files if name not in known)


def test_no_cycles():
    """Between modules, also of one layer."""
    graph: dict[str, set[str]] = {module: set() for module in modules()}
    for one in all_imports():
        if not one.lazy:
            graph[one.importer].add(one.imported)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> Iterator[str]:
        if module in path:
            yield " -> ".join([*path[path.index(module) :], module])
        elif module not in done:
            for imported in sorted(graph[module]):
                yield from visit(imported, (*path, module))
            done.add(module)

    told(cycle for module in graph for cycle in visit(module, ()))


def test_no_name_hides_a_module():
    """``import jaxbandit.sweep as m`` must give a module, whatever the package exports."""
    found = []
    for package, file in modules().items():
        if file.name != "__init__.py":
            continue
        inside = {name for _, name, _ in pkgutil.iter_modules([str(file.parent)])}
        for node in tree(file).body:
            names = []
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.ImportFrom) and node.module != package:
                names = [alias.asname or alias.name for alias in node.names]
            found += [f"{package}: {name} hides the module {package}.{name}" for name in names if name in inside]
    told(found)


def test_no_private_name_crosses_a_module():
    found = []
    for one in all_imports():
        private = [name for name in one.names if _is_private(name)]
        found += [f"{one.importer}:{one.line} takes {name} from {one.imported}" for name in private]
    for module, file in modules().items():
        own = {node.attr for node in ast.walk(tree(file)) if isinstance(node, ast.Attribute) and _is_self(node.value)}
        own |= {
            node.name for node in ast.walk(tree(file)) if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
        }
        own |= {node.id for node in ast.walk(tree(file)) if isinstance(node, ast.Name)}
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.Attribute) and _is_private(node.attr) and node.attr not in own | OF_OTHERS:
                found.append(f"{module}:{node.lineno} reads {ast.unparse(node)}")
    told(found)


# Underscored names that other libraries offer: NamedTuple's methods, and os._exit.
OF_OTHERS = {"_replace", "_fields", "_asdict", "_make", "_exit"}
# Members of Learner and Delays that the library's own classes declare and only the execution reads: not part of the protocols.
OF_OTHERS |= {"_adds_at_arm", "_check_state", "_long_waits", "_roomy", "_shares"}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def test_almost_nothing_is_probed_by_name():
    """Traits are declared. What is left says why beside it."""
    found = []
    for module, file in modules().items():
        lines = file.read_text(encoding="utf-8").splitlines()
        for node in ast.walk(tree(file)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
                near = "\n".join(lines[max(node.lineno - 4, 0) : node.lineno])
                assert "#" in near, f"{module}:{node.lineno}: say why in a comment"
                found.append(f"{module}:{node.lineno} {ast.unparse(node)}")
    assert len(found) <= MOST_PROBES, "\n" + "\n".join(found)


def test_public_functions_are_annotated():
    """Every argument and what is returned, of functions and methods without an underscore in their name or their class's."""

    def public(node: ast.AST) -> Iterator[tuple[ast.FunctionDef, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef) and child.name.startswith("_"):
                continue
            if isinstance(child, ast.FunctionDef):
                static = any(isinstance(one, ast.Name) and one.id == "staticmethod" for one in child.decorator_list)
                yield child, isinstance(node, ast.ClassDef) and not static
            elif isinstance(child, ast.ClassDef):
                yield from public(child)

    found, count = [], 0
    for module, file in modules().items():
        for function, is_method in public(tree(file)):
            every = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            every = every[1:] if is_method else every
            every += [one for one in (function.args.vararg, function.args.kwarg) if one is not None]
            bare = [one.arg for one in every if one.annotation is None] + ["return"] * (function.returns is None)
            count += 1
            found += [f"{module}:{function.lineno} {function.name}: {', '.join(bare)}"] if bare else []
    assert count > 500
    told(found)


def test_every_package_that_is_imported_is_declared():
    """At the top of modules: as a dependency of the package, or of one of its extras."""
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    declared = [*project["dependencies"], *itertools.chain(*project["optional-dependencies"].values())]
    known = {re.split(r"[<>=~]", one)[0] for one in declared} | {"jaxbandit"} | sys.stdlib_module_names
    for file in modules().values():
        for node in ast.parse(file.read_text()).body:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            assert {name.split(".")[0] for name in names} <= known, file
