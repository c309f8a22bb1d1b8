"""`make bench`: every benchmark, or those named, as ratios to a peer in one run."""

from __future__ import annotations

import argparse
import importlib
import pkgutil

import benchmarks

NAMES = [
    module.name.removeprefix("bench_")
    for module in pkgutil.iter_modules(benchmarks.__path__)
    if module.name.startswith("bench_")
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
