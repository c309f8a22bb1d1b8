"""Install what is needed to work on pairlens: the pinned packages of some extras, each by its hash, and these sources.

    python tools/install.py EXTRA ...

Run it by the Python of the environment to install into. pip cannot check hashes as soon as a folder is among what it
installs, nor those of a file of constraints. So there are two steps: the packages that the extras need, taken from
requirements.lock, where every entry says what it is needed by; and the sources alone. torch is not among them: which
build is right depends on the machine, so it is installed by itself.

The list was made on Linux. Elsewhere its versions are constraints without hashes, because other systems need packages
that it does not have.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
# Most modules of these packages are never imported: Python compiles the others when they are, pip would compile all.
PIP = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
BUILD = "build-system"
"""What the lock file calls the packages that build these sources."""
APART = {"torch"}


class Pinned(NamedTuple):
    """A package of the lock file."""

    version: str
    hashes: tuple[str, ...]
    needed_by: tuple[str, ...]


def normal(name: str) -> str:
    """The name of a package as comparisons want it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str) -> dict[str, Pinned]:
    """The packages of a lock file by name."""
    found = {}
    for entry in re.finditer(r"^(\S+)==(\S+)((?: \\\n    --hash=\S+)+)\n    # via (.+)$", text, re.MULTILINE):
        name, version, hashes, needed_by = entry.groups()
        found[name] = Pinned(version, tuple(re.findall(r"--hash=(\S+)", hashes)), tuple(needed_by.split(", ")))
    return found


def write_lock(packages: dict[str, Pinned]) -> str:
    """The text of a lock file."""
    lines = []
    for name, (version, hashes, needed_by) in sorted(packages.items()):
        marks = " \\\n".join(f"    --hash={one}" for one in hashes)
        lines.append(f"{name}=={version} \\\n{marks}\n    # via {', '.join(needed_by)}\n")
    return "".join(lines)


def direct(extras: list[str]) -> set[str]:
    """The packages that pairlens itself names, for some extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements, waiting, seen = list(project["dependencies"]), list(extras), set(extras)
    while waiting:
        for requirement in project["optional-dependencies"][waiting.pop()]:
            own = re.fullmatch(r"pairlens\[(.+)\]", requirement)
            more = own[1].split(",") if own else []
            requirements += [] if own else [requirement]
            waiting += [extra for extra in more if extra not in seen]
            seen.update(more)
    return {normal(re.split(r"[^\w.-]", requirement)[0]) for requirement in requirements} - APART


def needed(packages: dict[str, Pinned], extras: list[str]) -> dict[str, Pinned]:
    """The part of the lock file for some extras, with what builds these sources."""
    roots = direct(extras)
    if lacking := roots - set(packages):
        raise SystemExit(f"requirements.lock lacks {', '.join(sorted(lacking))}: run tools/lock.py")
    chosen = roots | {name for name, package in packages.items() if BUILD in package.needed_by}
    while more := {name for name, package in packages.items() if chosen & {*package.needed_by}} - chosen:
        chosen |= more
    return {name: packages[name] for name in chosen}


def main(extras: list[str]) -> None:
    """Install the packages of some extras, and the sources."""
    packages = read_lock(LOCK.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        listed = Path(folder, "packages.txt")
        if sys.platform == "linux":
            listed.write_text(write_lock(needed(packages, extras)), encoding="utf-8")
            subprocess.run([*PIP, "--no-deps", "--require-hashes", "-r", listed], check=True)
            subprocess.run([*PIP, "--no-deps", "--no-build-isolation", "-e", ROOT], check=True)
        else:
            versions = (f"{name}=={package.version}\n" for name, package in packages.items())
            listed.write_text("".join(versions), encoding="utf-8")
            subprocess.run([*PIP, "-c", listed, "-e", f"{ROOT}[{','.join(extras)}]"], check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
