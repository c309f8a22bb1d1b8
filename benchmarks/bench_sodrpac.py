"""SODRPaC: the time of the transformation and of the parameter search.

- The transformation of 100,000 must-links and as many cannot-links over 100,000 rows; the neighbour search beside it.
- The whole grid of 16 x 9 parameters with 5 folds on 2,000 x 50, against as many plain fits (some of them are timed).

    python -m benchmarks.bench_sodrpac [--quick]
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

from pairlens import Constraints
from pairlens.exceptions import SupervisionWarning
from pairlens.graphs.transformation import Mutual, generate
from pairlens.methods.sodrpac import LAM_GRID, THETA_GRID, SODRPaC


def transformation(n: int) -> dict[str, float]:
    """n rows, n must-links and n cannot-links."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 20)), rng.integers(0, 5, n)
    pairs = rng.integers(0, n, (8 * n, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    same = y[pairs[:, 0]] == y[pairs[:, 1]]
    known = Constraints(pairs[same][:n], pairs[~same][:n], n)
    began = time.perf_counter()
    mutual = Mutual.of(X, 3)
    found = time.perf_counter()
    made = generate(known, mutual)
    done = time.perf_counter()
    print(
        f"\n{known}: {len(made.pairs):,} cannot-links generated in {done - found:.2f} s, "
        f"after {found - began:.2f} s for the mutual neighbours (20 columns)"
    )
    return {"rules_s": done - found, "neighbours_s": found - began, "generated": len(made.pairs)}


def search(n: int, f: int) -> dict[str, float]:
    """The full grid, with fixed and with free dimension, against plain fits."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, n)
    X = rng.standard_normal((n, f)) + 3 * np.eye(8, f)[2 * y + rng.integers(0, 2, n)]
    pairs = Constraints.from_labels(y, n_pairs=n, random_state=0)
    seconds: dict[str, float] = {}
    for name, k in (("fixed", 2), ("auto", "auto")):
        began = time.perf_counter()
        model = SODRPaC(k, lam="auto", gamma="search", random_state=0).fit(X, constraints=pairs)
        seconds[name] = time.perf_counter() - began
        print(
            f"{n} x {f}, {len(LAM_GRID)} x {len(THETA_GRID)} grid, 5 folds, n_components={k!r}: {seconds[name]:.2f} s "
            f"(lam {model.lam_:g}, gamma {model.gamma_:.3g}, {model.n_components_} directions)"
        )
    began = time.perf_counter()
    for lam in LAM_GRID[:4]:
        SODRPaC(2, lam=lam).fit(X, constraints=pairs)
    plain = (time.perf_counter() - began) / 4 * len(LAM_GRID) * len(THETA_GRID) * 5
    print(f"as many plain fits: {plain:.0f} s, {plain / seconds['fixed']:.0f} times as long as the search")
    return {"search_s": seconds["fixed"], "search_auto_s": seconds["auto"], "plain_ratio": plain / seconds["fixed"]}


def main(quick: bool = False) -> dict[str, float]:
    """Print both, and return the figures."""
    warnings.simplefilter("ignore", SupervisionWarning)
    result = transformation(10_000 if quick else 100_000)
    return result | (search(500, 20) if quick else search(2000, 50))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    main(parser.parse_args().quick)
