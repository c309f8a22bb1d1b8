"""Scripts of the pages: unit tests of the studio's modules by node's own runner, and types of all scripts."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src" / "pairlens" / "studio" / "page"
REPORT = ROOT / "src" / "pairlens" / "report"
TOOLS = ROOT / "build" / "node" / "node_modules"
"""What only tests need: npm install --no-save --no-package-lock --prefix build/node axe-core typescript"""


def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("no node: install nodejs to test the page's modules")
    return found


def test_units():
    files = sorted(map(str, (Path(__file__).parent / "page").glob("*.test.mjs")))
    assert len(files) >= 4
    done = subprocess.run([node(), "--test", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("folder", [PAGE, REPORT], ids=["studio", "report"])
def test_types(folder, tmp_path):
    compiler = TOOLS / "typescript" / "bin" / "tsc"
    if not compiler.exists():
        pytest.skip("no TypeScript: npm install --no-save --no-package-lock --prefix build/node typescript")
    options = {"allowJs": True, "checkJs": True, "noEmit": True, "strict": True, "noUnusedLocals": True, "types": []}
    options |= {"target": "es2022", "module": "es2022", "lib": ["es2023", "dom", "dom.iterable"]}
    config = tmp_path / "tsconfig.json"
    config.write_text(json.dumps({"compilerOptions": options, "include": [f"{folder}/*.js"]}))
    done = subprocess.run([node(), compiler, "-p", config], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_page_asks_nothing_of_the_network():
    for path in PAGE.iterdir():
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, path.name
        assert "https://" not in text, path.name
        assert "innerHTML" not in text, path.name
        assert "eval(" not in text, path.name


def test_modules_stay_small():
    for path in PAGE.glob("*.js"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path.name
