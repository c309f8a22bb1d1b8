"""The browser of the tests: whichever Chromium is installed, drawing in software."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

ARGUMENTS = [
    "--no-sandbox",
    # Machines without a graphics card draw WebGL in software.
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    # The rest of the page is put together without it, in less than half of the time.
    "--disable-gpu-compositing",
]


def launch(playwright: Any, *, compositing: bool = False) -> Any:
    """Start it, or skip where there is none; `compositing` by WebGL, too."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no browser: install chromium (Debian: apt-get install chromium)")
    return playwright.chromium.launch(executable_path=found, args=ARGUMENTS[:-1] if compositing else ARGUMENTS)
