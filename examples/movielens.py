"""Which film next? Rank unseen films for one person at a time from the ratings of others (MovieLens-1M).

A film is a row; its features are the ratings of the most active people, with their median where they have not rated
it. A person's own ratings are preferences: a film rated higher is better. From 70 % of them we learn a view and a
ranking, and try them on the other 30 %. Two controls stand beside the methods for preferences: principal components,
and a ranking from all features. Read the table with them: here a view buys you a picture, not a better ranking.

    PAIRLENS_DATA=folder/of/data python examples/movielens.py [--users 20] [--reference 200]
"""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import GBWSDR, WSDR, Preferences, RankSVM
from pairlens.metrics import mean_average_precision, pairwise_accuracy

LIKED = 4
"""From this rating on a film counts as relevant."""


def read_ratings() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """User, film (both numbered from 0), rating, and MovieLens' own number of each film."""
    folder = os.environ.get("PAIRLENS_DATA")
    if folder is None:
        raise SystemExit("set PAIRLENS_DATA to the folder with movielens1m.npz")
    with np.load(Path(folder) / "movielens1m.npz", allow_pickle=False) as arrays:
        _, user = np.unique(arrays["user"], return_inverse=True)
        number, film = np.unique(arrays["item"], return_inverse=True)
        return user, film, arrays["rating"].astype(np.float64), number


def film_features(user: NDArray, film: NDArray, rating: NDArray, reference: NDArray) -> NDArray[np.float64]:
    """One row for each film, one column for each reference user, their median where they gave no rating."""
    table = np.full((film.max() + 1, len(reference)), np.nan)
    column = np.full(user.max() + 1, -1)
    column[reference] = np.arange(len(reference))
    known = column[user] >= 0
    table[film[known], column[user[known]]] = rating[known]
    return np.where(np.isnan(table), np.nanmedian(table, axis=0), table)


def methods(n_components: int) -> dict[str, object]:
    """What is compared; each can fit preferences and score rows."""
    scale = StandardScaler
    return {
        "PCA + RankSVM": make_pipeline(scale(), PCA(n_components), scale(), RankSVM(C="auto", random_state=0)),
        "RankSVM, all features": make_pipeline(scale(), RankSVM(C="auto", random_state=0)),
        "WSDR": make_pipeline(scale(), WSDR(n_components, C="auto", random_state=0)),
        "GBWSDR": make_pipeline(scale(), GBWSDR(n_components, random_state=0)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=20, help="number of people to rank for")
    parser.add_argument("--reference", type=int, default=200, help="number of people whose ratings are features")
    parser.add_argument("--components", type=int, default=5, help="dimensions of the views")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    user, film, rating, number = read_ratings()
    count = np.bincount(user)
    reference = np.argsort(-count, kind="stable")[: options.reference]
    people = np.flatnonzero((count >= 80) & (count <= 250))
    people = np.random.default_rng(0).permutation(people)[: options.users]
    features = film_features(user, film, rating, reference)

    accuracy: dict[str, list[float]] = {name: [] for name in methods(options.components)}
    precision: dict[str, list[float]] = {name: [] for name in accuracy}
    for person in people:
        seen, own = film[user == person], rating[user == person]
        train, test = train_test_split(np.arange(len(seen)), test_size=0.3, random_state=0)
        held_out = Preferences.from_scores(own[test])
        for name, model in methods(options.components).items():
            model.fit(features[seen[train]], own[train])
            scores = model.decision_function(features[seen[test]])
            accuracy[name].append(pairwise_accuracy(scores, held_out))
            precision[name].append(mean_average_precision(own[test] >= LIKED, scores))

    print(f"{len(people)} people, {options.reference} reference users, d = {options.components}; held-out films")
    print(f"{'':24}{'pairwise accuracy':>20}{'mean average precision':>26}")
    for name in accuracy:
        mean, error = 100 * np.mean(accuracy[name]), 100 * np.std(accuracy[name]) / np.sqrt(len(people))
        print(f"{name:24}{f'{mean:.1f} +- {error:.1f}':>20}{100 * np.mean(precision[name]):26.1f}")

    person = people[0]
    seen, own = film[user == person], rating[user == person]
    unseen = np.setdiff1d(np.arange(len(features)), seen)
    view = methods(options.components)["WSDR"].fit(features[seen], own)
    best = unseen[np.argsort(-view.decision_function(features[unseen]))[:5]]
    others = np.bincount(film, rating) / np.bincount(film)
    print(f"\nfor one person, the five unseen films ranked first (mean rating by all, {others.mean():.1f} on average):")
    print("  " + ", ".join(f"film {number[row]} ({others[row]:.1f})" for row in best))
    print(f"  C chosen by cross-validation: {view[-1].C_:g}")


if __name__ == "__main__":
    main()
