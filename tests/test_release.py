"""What a release holds: versions that agree, the oldest dependencies as declared, one address of the repository."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

import pairlens

ROOT = Path(__file__).parents[1]
if not (ROOT / "pyproject.toml").exists():
    pytest.skip("needs the repository or the sdist", allow_module_level=True)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_citation_names_this_version():
    (version,) = re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert version == pairlens.__version__


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


@pytest.fixture(scope="module")
def install():
    """The script that installs what the lock file pins."""
    spec = importlib.util.spec_from_file_location("install", ROOT / "tools" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_pinned_package_has_hashes(install):
    text = (ROOT / "requirements.lock").read_text()
    packages = install.read_lock(text)
    assert install.write_lock(packages) == text
    for package in packages.values():
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", one) for one in package.hashes)
    assert "://" not in text


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_the_part_of_the_lock_file_for_an_extra_is_all_that_it_needs(extra, install):
    """Of the packages that are installed here, whatever they need is there too."""
    from packaging.requirements import Requirement

    if extra == "boost-gpu":
        return  # in the place of boost
    packages = install.read_lock((ROOT / "requirements.lock").read_text())
    chosen = install.needed(packages, [extra])
    assert {"numpy", "scipy", "scikit-learn", "hatchling"} <= set(chosen)
    for name, package in chosen.items():
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        if found.version != package.version:
            continue
        for one in map(Requirement, found.requires or ()):
            if one.marker is None or one.marker.evaluate({"extra": ""}):
                assert install.normal(one.name) in {*chosen, *install.APART}, f"{name} needs {one.name}"


def test_what_an_extra_does_not_need_is_left_out(install):
    packages = install.read_lock((ROOT / "requirements.lock").read_text())
    assert "sphinx" not in install.needed(packages, ["cli", "report", "studio"])
    assert "sphinx" in install.needed(packages, ["docs"])
    assert "torch" not in install.needed(packages, ["all"])


@pytest.mark.skipif(not (ROOT / ".github").exists(), reason="needs the repository")
def test_the_workflow_runs_what_ci_runs():
    """One script, so that the two cannot differ."""
    assert "- run: .ci/run\n" in (ROOT / ".github" / "workflows" / "ci.yml").read_text()


@pytest.mark.skipif(not (ROOT / ".github").exists(), reason="needs the repository")
def test_workflows_name_their_actions_by_commit():
    """A tag can be moved to other code."""
    used = [
        line.strip()
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert used
    for line in used:
        assert re.search(r"uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line), line
