"""Install the wheel of a folder into an empty environment, and try what a user tries first.

python tools/try_wheel.py dist
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

LARGEST = 1_500_000
LOAD_ALL = """
from pairlens.datasets import load_penguins, make_glyphs, make_subclass_blobs
print(load_penguins().data.shape, make_glyphs().data.shape, make_subclass_blobs()[0].shape)
"""


def main(folder: Path) -> None:
    """Fail if the wheel is too large, or anything that comes with it does not work."""
    (wheel,) = folder.glob("*.whl")
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes")
    if size >= LARGEST:
        raise SystemExit(f"the wheel must be smaller than {LARGEST:,} bytes")
    with zipfile.ZipFile(wheel) as archive:
        foreign = [name for name in archive.namelist() if not name.startswith(("pairlens/", "pairlens-"))]
    if foreign:
        raise SystemExit(f"the wheel holds more than the library: {', '.join(foreign[:5])}")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place, "env")
        venv.create(home, with_pip=True)
        binaries = home / ("Scripts" if os.name == "nt" else "bin")
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PAIRLENS_DATA")}

        def run(*command: str | Path) -> None:
            subprocess.run([str(part) for part in command], check=True, cwd=place, env=environment)

        run(binaries / "python", "-m", "pip", "install", "--quiet", f"{wheel.resolve()}[cli,report]")
        run(binaries / "python", "-c", LOAD_ALL)
        run(binaries / "pairlens", "demo", "--out", "demo")
        if Path(place, "demo/report.html").stat().st_size < 10_000:
            raise SystemExit("demo/report.html is too small")
    print("the wheel works")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
