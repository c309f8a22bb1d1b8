"""The package itself: what importing costs, what a missing extra says, that the documented examples run."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import pairlens
from pairlens._optional import require
from pairlens.exceptions import MissingExtraError

MODULES = [module.name for module in pkgutil.walk_packages(pairlens.__path__, "pairlens.")]
EXTRAS = [
    "starlette",
    "uvicorn",
    "faiss",
    "xgboost",
    "dask",
    "distributed",
    "torch",
    "plotly",
    "polars",
    "typer",
    "rich",
    "pyarrow",
    "pandas",
]


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_brings_no_extra():
    """Nor does using all of it, beyond those that scikit-learn itself imports where it finds them."""
    code = "import sys; {}; print([m for m in " + repr(EXTRAS) + " if m in sys.modules])"
    assert _python(code.format("import pairlens")) == "[]\n"
    assert _python(code.format("from pairlens import *")) == _python(code.format("import sklearn.base"))


def test_a_method_works_as_the_first_thing_imported():
    """What one module registers must not depend on another that some other method imports."""
    names = ["LMCA", "WSDR", "WBDR", "SODRPaC", "PairLens", "SKKMeans"]
    code = f"""
import importlib, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
X = np.random.default_rng(0).random((30, 4))
for name in {names}:
    for module in [module for module in sys.modules if module.partition(".")[0] == "pairlens"]:
        del sys.modules[module]
    method = getattr(importlib.import_module("pairlens"), name)
    print(type(method().fit(X, np.repeat([0, 1], 15))).__name__)
"""
    assert _python(code).split() == names


def test_import_costs_no_more_than_scikit_learns_decomposition():
    """At most 1.15 x of processor time; the minimum of several runs, because a busy machine only ever adds."""
    code = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
    ours, theirs = [], []
    for attempt in range(12):
        theirs.append(float(_python(code.format("sklearn.decomposition"))))
        ours.append(float(_python(code.format("pairlens"))))
        if attempt >= 2 and min(ours) <= 1.15 * min(theirs):
            break
    assert min(ours) <= 1.15 * min(theirs)


def test_a_missing_extra_names_the_install_command():
    with pytest.raises(MissingExtraError, match=r"Drawing needs no_such_module.*pip install 'pairlens\[report\]'"):
        require("no_such_module", extra="report", purpose="Drawing")
    assert issubclass(MissingExtraError, ImportError)


def test_an_import_error_inside_an_extra_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "broken_extra.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        require("broken_extra", extra="report", purpose="Drawing")


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    module = importlib.import_module(name)
    assert module.__doc__, f"{name} has no docstring"
    assert doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE).failed == 0


def test_public_names_exist_and_are_documented():
    for name in pairlens.__all__:
        assert getattr(pairlens, name).__doc__ or name == "__version__"
    assert set(pairlens.__all__) <= set(dir(pairlens))
    assert pairlens.metrics.rand_score([0, 1], [0, 1]) == 1.0
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pairlens.nothing


def test_the_pages_name_everything_public():
    docs = Path(__file__).parent.parent / "docs"
    modules = ["asking", "datasets", "exceptions", "judging", "metrics", "report", "selection", "studio"]
    modules += ["supervision", "tables"]
    public = {*pairlens.__all__, *(name for module in modules for name in getattr(pairlens, module).__all__)}
    # scikit-learn's own, and the version.
    public -= {"rand_score", "adjusted_rand_score", "__version__"}
    public |= set(pairlens.anndata.__all__)
    listed = [line.strip() for line in (docs / "api.rst").read_text().splitlines() if line.startswith("   ")]
    assert public == {name for name in listed if not name.startswith(":")}
    listed = [line for name in ("index.md", "reference.md") for line in (docs / name).read_text().splitlines()]
    in_depth = (docs / "method_pages.py").read_text()  # writes the index of the methods
    pages = {page.stem for page in docs.glob("*.md")} - {"index"}
    assert {page for page in pages if f'"{page}": (' not in in_depth} <= set(listed)


@cache
def _imports() -> tuple[tuple[str, str, str], ...]:
    """Importing module, package it belongs to, and imported name, of all imports inside the library.

    Those in functions and in TYPE_CHECKING blocks count too, and ``from pairlens import DSP`` as an import of its home.
    """
    root = Path(pairlens.__path__[0])
    found = []
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        for node in ast.walk(ast.parse(path.read_text())):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path} imports relatively"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                if name.startswith("pairlens."):
                    home = pairlens._HOMES.get(name.removeprefix("pairlens."))
                    found.append((".".join(parts), parts[0], name if home is None else f"pairlens.{home}"))
    # The package itself only says where its public names are.
    return tuple(entry for entry in found if entry[0] != "__init__")


FLOORS = [
    {"engines"},
    {"supervision", "tables", "spectral", "kernels", "graphs", "judging"},
    {"learning"},
    {"methods", "preference", "cluster", "metrics", "datasets"},
    {"selection", "asking", "io", "experiments", "anndata", "pipeline"},
    {"papers", "report", "studio", "cli"},
]


def test_nothing_below_imports_anything_above():
    level = {room: i for i, rooms in enumerate(FLOORS) for room in rooms}
    rooms = {path.stem for path in Path(pairlens.__path__[0]).iterdir() if not path.stem.startswith("_")}
    assert rooms - {"exceptions", "py"} <= set(level), "a new room needs a floor"
    upwards = {
        (module, imported)
        for module, room, imported in _imports()
        if level.get(imported.split(".")[1], -1) > level.get(room, len(level))
    }
    assert not upwards


def test_no_two_packages_form_a_circle():
    """Of any length; the modules beside the packages count as one package each."""
    uses: dict[str, set[str]] = {}
    for _, room, imported in _imports():
        if imported.split(".")[1] != room:
            uses.setdefault(room, set()).add(imported.split(".")[1])
    done: set[str] = set()

    def visit(room: str, path: tuple[str, ...]) -> None:
        assert room not in path, " → ".join([*path[path.index(room) :], room])
        if room not in done:
            for other in sorted(uses.get(room, ())):
                visit(other, (*path, room))
            done.add(room)

    for room in sorted(uses):
        visit(room, ())


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_nobody_imports_what_is_private_to_another_package():
    private = {
        (module, imported)
        for module, room, imported in _imports()
        if imported.split(".")[1] != room and any(_is_private(part) for part in imported.split(".")[2:])
    }
    assert not private


def test_every_engine_has_every_operation():
    """An operation that is declared but not registered would fail only when it is called."""
    from pairlens.engines import interface
    from pairlens.engines.dask import DaskRows
    from pairlens.engines.torch import TensorRows

    operations = [value for value in vars(interface).values() if hasattr(value, "registry")]
    assert len(operations) >= 20
    for operation in operations:
        assert {object, DaskRows, TensorRows} <= set(operation.registry), operation.__name__
        assert operation.dispatch(object).__module__.startswith("pairlens.engines.local"), operation.__name__


def test_only_the_command_imports_the_experiments_of_the_papers():
    users = {module for module, room, name in _imports() if name.startswith("pairlens.papers") and room != "papers"}
    assert users == {"cli.reproduce"}


def test_the_blocks_of_the_readme_run_one_after_the_other(tmp_path):
    """Each may use what those before it made."""
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    blocks = [part.split("```")[0] for part in readme.split("```python\n")[1:]]
    assert blocks
    code = "\n".join([*blocks, "print({question: Z.shape for question, Z in maps.items()})"])
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert result.stdout.splitlines()[-1] == "{'species': (333, 2), 'sex': (333, 2)}"
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_method_of_contributing_runs():
    """The example of a new method is complete."""
    import numpy as np

    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    namespace: dict[str, object] = {}
    exec(text.split("```python\n")[1].split("```")[0], namespace)
    X = np.random.default_rng(0).standard_normal((20, 4))
    model = namespace["Mine"]().fit(X, constraints=pairlens.Constraints([(0, 1)], n_samples=20))
    assert model.components_.shape == (2, 4)
