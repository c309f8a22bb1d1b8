"""Import optional dependencies where they are used, or give the command that installs them."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

from pairlens.exceptions import MissingExtraError


def require(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import an optional module or say which extra of pairlens installs it.

    `purpose` is what it is needed for, as the subject of a sentence ("reading a table into a DataFrame").
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f"{purpose} needs {module}, which is not installed. Install it with:  pip install 'pairlens[{extra}]'",
            name=module,
        ) from error


def installed_version(package: str) -> str | None:
    """Return the version of a distribution, or of its variant for CPUs; None if neither is installed."""
    for name in (package, f"{package}-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return None
