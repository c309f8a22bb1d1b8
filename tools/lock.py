"""Write requirements.lock: what all extras need, in versions that go together, with the hashes of all their files.

    python tools/lock.py [PACKAGE ...]

Run it by the Python of an environment of `make`, with nothing installed by hand. The versions that are there stay, but
for the packages named. pip resolves, and its index says which files there are; tests/test_release.py reads the result.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from install import APART, BUILD, LOCK, PIP, ROOT, Pinned, normal, read_lock, write_lock
from pip._internal.commands import create_command
from pip._internal.index.collector import parse_links
from pip._internal.models.link import Link
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import parse_sdist_filename, parse_wheel_filename

EDITABLE = "editables"
"""What hatchling needs to install sources that can be edited."""
TORCH = "torch==2.13.0"
"""The build that other packages are resolved with; neither it nor what only it needs is in the lock file."""


def roots() -> dict[str, list[Requirement]]:
    """What pairlens and its build need, by who asks for it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    own = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    found = [Requirement(text) for text in own if not text.startswith("pairlens[")]
    # XGBoost for GPUs stands in the place of that for CPUs.
    ours = [one for one in found if normal(one.name) not in {*APART, "xgboost"}]
    return {"pairlens": ours, BUILD: [Requirement(text) for text in (*settings[BUILD]["requires"], EDITABLE)]}


def resolved(asked: dict[str, list[Requirement]], kept: dict[str, Pinned]) -> dict[str, dict[str, Any]]:
    """What pip would install, by name."""
    with tempfile.TemporaryDirectory() as folder:
        constraints, report = Path(folder, "constraints.txt"), Path(folder, "report.json")
        lines = [TORCH, *(f"{name}=={one.version}" for name, one in kept.items())]
        constraints.write_text("\n".join(lines), encoding="utf-8")
        wanted = [str(one) for requirements in asked.values() for one in requirements]
        command = [*PIP, "--dry-run", "--ignore-installed", "--report", report, "-c", constraints, *wanted]
        subprocess.run(command, check=True)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {normal(one["metadata"]["name"]): one["metadata"] for one in found}


def edges(asked: dict[str, list[Requirement]], packages: dict[str, dict[str, Any]]) -> dict[str, set[str]]:
    """By package, what needs it, with the extras that are asked for."""
    found: dict[str, set[str]] = {name: set() for name in packages}
    waiting = [(parent, one) for parent, requirements in asked.items() for one in requirements]
    seen = set()
    while waiting:
        parent, requirement = waiting.pop()
        name, extras = normal(requirement.name), frozenset(requirement.extras)
        if name in APART:
            continue
        found[name].add(parent)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for text in packages[name].get("requires_dist", ()):
            one = Requirement(text)
            if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                waiting.append((name, one))
    return found


def hashes_of(versions: dict[str, str]) -> dict[str, tuple[str, ...]]:
    """The hashes of all files of these versions of packages, as the index of pip gives them."""
    command: Any = create_command("download")
    options, _ = command.parse_args([])
    found = {}
    with command.main_context(), command._build_session(options) as session:
        collector = command._build_package_finder(options, session)._link_collector
        for name, version in versions.items():
            pages = [
                collector.fetch_response(Link(place)) for place in collector.search_scope.get_index_urls_locations(name)
            ]
            links = [link for page in pages if page is not None for link in parse_links(page)]
            ours = {link.hash for link in links if link.hash_name == "sha256" and _version_of(link.filename) == version}
            if not ours:
                raise SystemExit(f"the index has no hash for {name} {version}")
            found[name] = tuple(f"sha256:{one}" for one in sorted(ours))
    return found


def _version_of(filename: str) -> str | None:
    try:
        parsed = parse_wheel_filename(filename) if filename.endswith(".whl") else parse_sdist_filename(filename)
    except ValueError:
        return None
    return str(parsed[1])


def main(upgraded: list[str]) -> None:
    """Write the lock file."""
    text = LOCK.read_text(encoding="utf-8")
    kept = {name: one for name, one in read_lock(text).items() if name not in map(normal, upgraded)}
    asked = roots()
    packages = resolved(asked, kept)
    needed_by = {name: parents for name, parents in edges(asked, packages).items() if parents}
    versions = {name: packages[name]["version"] for name in needed_by}
    known = {name: one.hashes for name, one in kept.items() if versions.get(name) == one.version}
    hashes = known | hashes_of({name: version for name, version in versions.items() if name not in known})
    found = {name: Pinned(versions[name], hashes[name], tuple(sorted(parents))) for name, parents in needed_by.items()}
    LOCK.write_text(write_lock(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
