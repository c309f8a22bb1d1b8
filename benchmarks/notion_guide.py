"""Measure how many answers a notion takes, for the table of the guide (docs/guide/notion.md).

    python -m benchmarks.notion_guide               # five minutes of one core; fills the table
    python -m benchmarks.notion_guide --only-print

The two tables of the guide, each by two questions: the penguins by species and by sex, pictures of letters by letter
and by weight. A map is drawn of all rows, and k-means with the true number of groups is judged by its ARI on the rows
that occur in no answer.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.league import DOCS
from benchmarks.maps_table import filled_page
from benchmarks.placed import Array
from pairlens import Constraints, PairMap
from pairlens.datasets import load_penguins, make_glyphs

BEGIN = "<!-- generated: benchmarks.notion_guide -->"
N_PAIRS = (30, 60, 100, 200)
DRAWS = 5

Case = tuple[str, str, Array, np.ndarray, bool]
"""Rows by name, a question, the rows, their groups, and whether columns are scaled."""


def cases() -> list[Case]:
    """Return the rows and questions of the guide."""
    penguins = load_penguins()
    known = np.array([sex is not None for sex in penguins.sex])
    glyphs = make_glyphs(5, letters="ABEHNR", random_state=0)
    return [
        ("penguins", "the same species?", penguins.data[known], penguins.species[known], True),
        ("", "the same sex?", penguins.data[known], penguins.sex[known], True),
        ("letters", "the same letter?", glyphs.data, glyphs.letter, False),
        ("", "both bold, or neither?", glyphs.data, glyphs.bold, False),
    ]


def ari(X: Array, groups: np.ndarray, scaled: bool, n_pairs: int, draw: int) -> float:
    """Return the ARI of k-means in a map, on the rows that occur in no answer."""
    y = np.unique(groups, return_inverse=True)[1]
    pairs = Constraints.from_labels(y, n_pairs=n_pairs, random_state=draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Z = PairMap(standardize=scaled, random_state=0).fit(X, constraints=pairs).embedding_
    found = KMeans(int(y.max()) + 1, n_init=10, random_state=0).fit_predict(Z)
    others = np.setdiff1d(np.arange(len(y)), pairs.rows)
    return float(adjusted_rand_score(y[others], found[others]))


def table() -> str:
    """Return the table, in Markdown."""
    lines = [f"| rows | question | {N_PAIRS[0]} answers | " + " | ".join(map(str, N_PAIRS[1:])) + " |"]
    lines.append("|---|---|" + "--:|" * len(N_PAIRS))
    for rows, question, X, groups, scaled in cases():
        means = [np.mean([ari(X, groups, scaled, n, draw) for draw in range(DRAWS)]) for n in N_PAIRS]
        lines.append(f"| {rows} | {question} | " + " | ".join(f"{mean:.2f}".lstrip("0") for mean in means) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and fill the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only-print", action="store_true", help="leave the page as it is")
    options = parser.parse_args()
    found = table()
    print(found)
    if not options.only_print:
        page = DOCS / "guide" / "notion.md"
        page.write_text(filled_page(page.read_text(), found, BEGIN))


if __name__ == "__main__":
    main()
