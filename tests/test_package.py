"""The package itself: what importing costs, what a missing extra says, that the documented examples run."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import pairlens
from pairlens._optional import require
from pairlens.exceptions import MissingExtraError

MODULES = [module.name for module in pkgutil.walk_packages(pairlens.__path__, "pairlens.")]
EXTRAS = ["faiss", "xgboost", "dask", "distributed", "torch", "plotly", "polars", "typer", "rich", "pyarrow", "pandas"]


def _python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_brings_no_extra():
    """Nor does using all of it, beyond those that scikit-learn itself imports where it finds them."""
    code = "import sys; {}; print([m for m in " + repr(EXTRAS) + " if m in sys.modules])"
    assert _python(code.format("import pairlens")) == "[]\n"
    assert _python(code.format("from pairlens import *")) == _python(code.format("import sklearn.base"))


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
    modules = ["datasets", "exceptions", "metrics", "papers", "report", "selection"]
    public = {*pairlens.__all__, *(name for module in modules for name in getattr(pairlens, module).__all__)}
    # scikit-learn's own, and the version.
    public -= {"rand_score", "adjusted_rand_score", "__version__"}
    listed = [line.strip() for line in (docs / "api.rst").read_text().splitlines() if line.startswith("   ")]
    assert public == {name for name in listed if not name.startswith(":")}
    index = (docs / "index.md").read_text().splitlines()
    assert {page.stem for page in docs.glob("*.md")} - {"index"} <= set(index)


def test_rooms_depend_one_way():
    """Nothing below imports anything above."""
    floors = [
        {"engines"},
        {"supervision", "graphs", "kernels", "spectral"},
        {"judging"},
        {"methods", "preference", "cluster", "datasets"},
        {"selection", "io"},
        {"papers", "report", "studio", "cli"},
    ]
    level = {room: i for i, rooms in enumerate(floors) for room in rooms}
    root = Path(pairlens.__path__[0])
    for path in root.rglob("*.py"):
        room = path.relative_to(root).parts[0]
        for line in path.read_text().splitlines():
            words = line.split()
            if len(words) > 1 and words[0] in ("from", "import") and words[1].startswith("pairlens."):
                imported = words[1].split(".")[1]
                if room in level and imported in level:
                    assert level[imported] <= level[room], f"{path.relative_to(root)} imports pairlens.{imported}"


def test_the_code_of_the_readme_runs():
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    code = readme.split("```python\n")[1].split("```")[0]
    assert _python(code + "\nprint(Z.shape)") == "(178, 2)\n"


def test_the_method_of_contributing_runs():
    """The example of a new method is complete."""
    import numpy as np

    text = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text()
    namespace: dict[str, object] = {}
    exec(text.split("```python\n")[1].split("```")[0], namespace)
    X = np.random.default_rng(0).standard_normal((20, 4))
    model = namespace["Mine"]().fit(X, constraints=pairlens.Constraints([(0, 1)], n_samples=20))
    assert model.components_.shape == (2, 4)
