"""The tour of the command line on handwritten digits; the same as ``pairlens demo``."""

from __future__ import annotations

from pairlens.cli.app import run

if __name__ == "__main__":
    raise SystemExit(run(["demo"]))
