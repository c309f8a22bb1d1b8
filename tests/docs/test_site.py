"""The check of the built site finds what is broken, and the site passes it; examples are numbered and short."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import pairlens

ROOT = Path(__file__).parents[2]
if not (ROOT / "docs" / "check_site.py").exists():
    pytest.skip("the pages are not in this distribution", allow_module_level=True)
BUILT = ROOT / "build" / "docs" / "index.html"


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("check_site", ROOT / "docs" / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('<a href="b.html#there">x</a><a href="#top">y</a><p id="top"><a href="https://example.org/c">z</a>', None),
        ('<a href="b.html#not">x</a>', "a.html: b.html#not does not exist"),
        ('<a href="c.html">x</a>', "a.html: c.html does not exist"),
        ('<a href="#not">x</a>', "a.html: #not does not exist"),
        ('<img src="c.png">', "a.html: c.png does not exist"),
        ('<script src="https://example.org/a.js"></script>', "a.html: loads https://example.org/a.js"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "a.html: loads //example.org/a.css"),
    ],
)
def test_the_check_finds_what_is_broken(content, problem, tmp_path, check):
    (tmp_path / "a.html").write_text(content)
    (tmp_path / "b.html").write_text('<h1 id="there">b</h1>')
    assert check.problems(tmp_path) == ([problem] if problem else [])


def test_the_check_misses_notebooks_and_pages(tmp_path, check):
    assert check.problems(tmp_path) == [f"no pages in {tmp_path}"]
    (tmp_path / "a.html").write_text("")
    (tmp_path / "plot_01_a.py").write_text("")
    assert check.problems(tmp_path, tmp_path) == ["plot_01_a.py is no notebook"]


def test_the_check_searches_headings(tmp_path, check, monkeypatch):
    monkeypatch.setattr(check, "SEARCHED", {"text": "b"})
    index = (
        '{{"docnames": ["a", "b"], "alltitles": {{"Text": [[{page}, "text"]], "All about text files": [[1, "all"]]}}}}'
    )
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({index.format(page=1)})")
    assert check.not_found(tmp_path) == []
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({index.format(page=0)})")
    assert check.not_found(tmp_path) == ["searching for 'text' does not find b"]


if BUILT.exists():

    def test_the_built_site_passes(check):
        assert check.problems(BUILT.parent) + check.not_found(BUILT.parent) == []


def test_examples_are_numbered_and_short():
    examples = sorted((ROOT / "examples").glob("plot_*.py"))
    assert [path.name[5:7] for path in examples] == [f"{number:02}" for number in range(1, len(examples) + 1)]
    assert len(examples) >= 15
    assert all(len(path.read_text("utf-8").splitlines()) <= 60 for path in examples)


def test_the_index_for_language_models_names_every_page():
    docs = ROOT / "docs"
    site = re.escape(tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Documentation"])
    linked = re.findall(rf"\]\({site}/en/latest/([\w/]+)\.html\)", (docs / "llms.txt").read_text("utf-8"))
    pages = {str(page.relative_to(docs).with_suffix("").as_posix()) for page in docs.rglob("*.md")}
    assert sorted(linked) == sorted({*pages, "api"} - {"index", "guide/index", "reference"})


def test_every_method_has_a_page():
    """A method that is exported belongs to a family of docs/method_pages.py."""
    source = (ROOT / "docs" / "method_pages.py").read_text("utf-8")
    methods = [
        name
        for name in pairlens.__all__
        if isinstance(cls := getattr(pairlens, name), type) and issubclass(cls, BaseEstimator)
    ]
    assert [name for name in methods if f'"{name}"' not in source] == ["TableEncoder"]  # makes features, no view
