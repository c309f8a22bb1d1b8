"""`make bench` calls every benchmark in the way that the benchmark can be called."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

command = pytest.importorskip("benchmarks.__main__", reason="needs the folder benchmarks of the repository")
FOLDER = Path(command.__file__).parent


@pytest.mark.parametrize("name", [*command.NAMES, *command.BY_THEMSELVES])
def test_make_bench_runs_those_that_have_a_quick_size(name):
    tree = ast.parse((FOLDER / f"bench_{name}.py").read_text("utf-8"))
    main = next(node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
    known = {one.arg for one in (*main.args.args, *main.args.kwonlyargs)}
    assert ("quick" in known) == (name in command.NAMES)
