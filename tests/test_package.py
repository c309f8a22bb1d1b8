"""The package itself: what importing costs, what a missing extra says, that the documented examples run."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import pairlens
import reproduction
from pairlens._optional import require
from pairlens.exceptions import MissingExtraError
from tests.estimators import all_estimators

MODULES = [
    module.name
    for package in (pairlens, reproduction)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]
EXTRAS = [
    "starlette",
    "uvicorn",
    "faiss",
    "xgboost",
    "dask",
    "distributed",
    "torch",
    "sentence_transformers",
    "onnxruntime",
    "plotly",
    "polars",
    "typer",
    "rich",
    "pyarrow",
    "pandas",
]


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.processes
def test_import_brings_no_extra():
    """Nor does using all of it, beyond those that scikit-learn itself imports where it finds them."""
    code = "import sys; {}; print([m for m in " + repr(EXTRAS) + " if m in sys.modules])"
    assert _python(code.format("import pairlens")) == "[]\n"
    assert _python(code.format("from pairlens import *")) == _python(code.format("import sklearn.base"))


@pytest.mark.processes
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


@pytest.mark.processes
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
    assert callable(pairlens.metrics.pairwise_accuracy)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pairlens.nothing


def test_the_pages_name_everything_public():
    docs = Path(__file__).parent.parent / "docs"
    modules = ["asking", "datasets", "exceptions", "judging", "metrics", "report", "selection"]
    modules += ["supervision", "tables"]
    public = {*pairlens.__all__, *(name for module in modules for name in getattr(pairlens, module).__all__)}
    public = {*public, *pairlens.anndata.__all__} - {"__version__"}
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
    {"selection", "asking", "io", "anndata", "drawing", "pipeline"},
    {"report", "studio", "cli"},
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


def test_no_estimator_has_more_than_three_ancestors_of_ours():
    """Whoever reads `fit` and `transform` of a method finds them in the method or in one of few classes above it."""
    for cls in all_estimators():
        ancestors = [base.__name__ for base in cls.__mro__[1:] if base.__module__.startswith("pairlens.")]
        assert len(ancestors) <= 3, f"{cls.__name__}: {ancestors}"


@pytest.mark.parametrize(
    ("method", "most"), [("BWDR", 11), ("DSP", 15), ("PairLens", 18), ("PairMap", 23)], ids=lambda value: str(value)
)
@pytest.mark.filterwarnings("ignore::pairlens.exceptions.SupervisionWarning")
def test_a_fit_walks_through_few_files(method, most):
    """Whoever wants to know what a fit does has to open that many files of ours."""
    if method == "PairMap":
        pytest.importorskip("openTSNE")
    X, y = load_wine(return_X_y=True)
    X, pairs = scale(X), pairlens.Constraints.from_labels(y, n_pairs=60, random_state=0)
    model = getattr(pairlens, method)()
    model.fit(X, constraints=pairs)
    root, walked = str(Path(pairlens.__path__[0])), set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(root):
            walked.add(frame.f_code.co_filename.removeprefix(root))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        model.fit(X, constraints=pairs)
    finally:
        sys.setprofile(before)
    assert 5 < len(walked) <= most, sorted(walked)


def test_no_method_inherits_from_another():
    public = {getattr(pairlens, name) for name in pairlens.__all__}
    related = {(cls, base) for cls in all_estimators() for base in cls.__mro__[1:] if cls in public and base in public}
    assert not related


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_nobody_imports_what_is_private_to_another_package():
    private = {
        (module, imported)
        for module, room, imported in _imports()
        if imported.split(".")[1] != room and any(_is_private(part) for part in imported.split(".")[2:])
    }
    assert not private


def test_the_private_names_of_other_libraries_are_listed():
    """A new version may change them without notice, so docs/dependencies.md lists them and says what each is for."""
    used = set()
    for path in Path(pairlens.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            foreign = [name for name in names if not name.startswith("pairlens")]
            used |= {name for name in foreign if any(map(_is_private, name.split(".")))}
    page = (Path(__file__).parents[1] / "docs" / "dependencies.md").read_text("utf-8")
    section = page.split("## Private names of other libraries")[1].split("\n## ")[0]
    listed = set(re.findall(r"`((?:sklearn|openTSNE|numpy|scipy|dask|torch|xgboost)\.[\w.]+)`", section))
    assert used == listed


def test_every_engine_has_every_operation_that_methods_ask_it_for():
    """An operation that is not registered would take rows of an engine for an array, and fail when it is called."""
    from pairlens import engines
    from pairlens.engines.dask import DaskRows
    from pairlens.engines.torch import TensorRows

    operations = {name: value for name, value in vars(engines).items() if hasattr(value, "registry")}
    assert len(operations) >= 20
    # Methods that do more with rows than to sum over them and over pairs learn from landmarks in memory.
    in_memory = {"absolute_deviations", "column_deviations", "mean_norm", "along", "rescaled", "symmetric_eigen"}
    in_memory |= {"kernel_product", "graph_scatter", "neighbors", "near_walk", "projected_rows"}
    for name, operation in operations.items():
        assert TensorRows in operation.registry, name
        assert (DaskRows in operation.registry) == (name not in in_memory), name


@pytest.mark.parametrize(
    ("package", "above"), [("src/pairlens", "reproduction|benchmarks"), ("reproduction", "benchmarks")]
)
def test_the_library_does_not_import_what_stands_on_it(package, above):
    """The wheel holds the library alone; the experiments of the papers and the benchmarks are beside it."""
    root = Path(__file__).parents[1]
    pattern = re.compile(rf"^\s*(?:from|import) (?:{above})\b", re.MULTILINE)
    assert not [str(path) for path in (root / package).rglob("*.py") if pattern.search(path.read_text("utf-8"))]


def _run_blocks(page: str, folder: Path, last: str) -> str:
    """Run the blocks of a page in one process, then one more line, and return the last line printed."""
    text = (Path(__file__).parents[1] / page).read_text("utf-8")
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    assert blocks
    code = "\n".join([*blocks, last])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_the_blocks_of_the_readme_run(tmp_path):
    last = _run_blocks("README.md", tmp_path, "print({question: Z.shape for question, Z in maps.items()})")
    assert last == "{'species': (333, 2), 'sex': (333, 2)}"
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_the_blocks_of_the_notes_for_assistants_run(tmp_path):
    assert _run_blocks("AGENTS.md", tmp_path, "print(search.best_params_)").startswith("{'n_components': ")


def test_the_method_of_contributing_runs():
    """The example of a new method is complete."""
    import numpy as np

    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    namespace: dict[str, object] = {}
    exec(text.split("```python\n")[1].split("```")[0], namespace)
    X = np.random.default_rng(0).standard_normal((20, 4))
    model = namespace["Mine"]().fit(X, constraints=pairlens.Constraints([(0, 1)], n_samples=20))
    assert model.components_.shape == (2, 4)
