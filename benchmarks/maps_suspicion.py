"""Which answers a PairMap suspects: right ones among right ones, and wrong ones when a tenth of them is wrong.

    python -m benchmarks.maps_suspicion                    # digits and wine, all rows: three minutes of one core
    python -m benchmarks.maps_suspicion --sets seeds usps  # others, at most 1,797 rows of each

Protocol. 100 and 200 random pairs, four draws. Of right answers: the highest suspicion in each draw, and how many
answers stand out (are more probably wrong than right). With a tenth of them wrong: precision, the share of wrong ones
among as many of the most suspicious as there are wrong ones. The layout has no part in suspicion and is cut short.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from numpy.typing import NDArray

from benchmarks.league import load
from benchmarks.measure import report
from pairlens import Constraints, PairMap

SETS = ("digits", "wine")
"""Those on which the model of suspicion was chosen."""
MAX_ROWS = 1797
N_PAIRS = (100, 200)
WRONG = 0.1
DRAWS = 4
NO_LAYOUT = {"early_exaggeration_iter": 1, "max_iter": 1}


def of_right_answers(X: NDArray[np.float64], pairs: Constraints, draw: int) -> tuple[float, int]:
    """Highest suspicion, and how many answers stand out."""
    found = PairMap(random_state=draw, **NO_LAYOUT).fit(X, constraints=pairs).suspicious_pairs()
    return float(found.suspicion.max()), len(found.standing_out)


def precision(X: NDArray[np.float64], y: NDArray[np.int64], pairs: Constraints, draw: int) -> float:
    """Share of wrong answers among as many of the most suspicious."""
    given = pairs.flip(WRONG, random_state=draw)
    found = PairMap(random_state=draw, **NO_LAYOUT).fit(X, constraints=given).suspicious_pairs()
    wrong = (y[found.pairs[:, 0]] == y[found.pairs[:, 1]]) != (found.link > 0)
    return float(wrong[: wrong.sum()].mean())


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    rows = []
    for name in options.sets:
        X, y = load(name, MAX_ROWS)
        for n_pairs in N_PAIRS:
            drawn = [Constraints.from_labels(y, n_pairs=n_pairs, random_state=draw) for draw in range(DRAWS)]
            right = [of_right_answers(X, pairs, draw) for draw, pairs in enumerate(drawn)]
            found = [precision(X, y, pairs, draw) for draw, pairs in enumerate(drawn)]
            highest = ", ".join(f"{value:.2f}" for value, _ in right)
            shares = ", ".join(f"{value:.2f}" for value in found)
            rows.append((name, str(n_pairs), highest, str(sum(count for _, count in right)), shares))
    report(
        f"suspicious_pairs of PairMap, {DRAWS} draws",
        rows,
        ("set", "answers", "all right: highest suspicion", "standing out", f"{WRONG:.0%} wrong: precision"),
    )


if __name__ == "__main__":
    main()
