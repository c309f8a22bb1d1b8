"""What a release holds: versions that agree, the oldest dependencies as declared, one address of the repository."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import pairlens

ROOT = Path(__file__).parents[1]
if not (ROOT / "pyproject.toml").exists():
    pytest.skip("needs the repository or the sdist", allow_module_level=True)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_names_this_version():
    (version,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version == pairlens.__version__.removesuffix(".dev0")


def test_the_oldest_dependencies_are_those_declared():
    """A version is the lowest that pyproject.toml allows; it may have more parts.

    Those that pyproject.toml does not name are what the others need.
    """
    lowest = {}
    extras = [one for wanted in PROJECT["optional-dependencies"].values() for one in wanted]
    for requirement in [*PROJECT["dependencies"], *extras]:
        if match := re.fullmatch(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement):
            lowest[match[1]] = match[2]
    lines = (ROOT / "requirements-oldest.txt").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    assert {"numpy", "scipy", "scikit-learn", "pandas"} <= set(pinned)
    assert set(pinned) - set(lowest) <= {"click", "pyparsing"}
    for name, version in pinned.items():
        oldest = lowest.get(name, version)
        assert f"{version}.".startswith(f"{oldest}."), f"{name}: {version} is not the oldest, {oldest}"


def test_one_address_of_the_repository():
    found = set()
    for path in (ROOT / "pyproject.toml", *ROOT.glob("*.md"), *ROOT.glob("*.cff"), *(ROOT / "docs").glob("*.md")):
        found |= set(re.findall(r"github\.com/(?:pairlens)[\w/-]*?/pairlens", path.read_text()))
    assert found == {"github.com/pairlens/pairlens"}
    assert all(
        url.startswith(("https://github.com/pairlens/pairlens", "https://pairlens."))
        for url in PROJECT["urls"].values()
    )
