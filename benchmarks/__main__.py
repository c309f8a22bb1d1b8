"""`make bench`: every benchmark that has a quick size, or those named, as ratios to a peer in one run."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import benchmarks

BY_THEMSELVES = ("calibration", "metric_learn", "scale", "studio")
"""They have options of their own, or need an environment of their own: ``python -m benchmarks.bench_NAME --help``."""
NAMES = [
    name
    for module in pkgutil.iter_modules(benchmarks.__path__)
    if module.name.startswith("bench_") and (name := module.name.removeprefix("bench_")) not in BY_THEMSELVES
]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], help=f"of {', '.join(NAMES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="smaller sizes")
    arguments = parser.parse_args()
    for name in arguments.names or NAMES:
        importlib.import_module(f"benchmarks.bench_{name}").main(quick=arguments.quick)


if __name__ == "__main__":
    main()
