"""Answers by a machine, some audited by a person: are they worth more than a few answers of the person alone?

    PAIRLENS_DATA=<folder> python -m benchmarks.annotators                 # three sets, four draws
    python -m benchmarks.annotators --sets vehicle --draws 8 --strategy random
    python -m benchmarks.annotators --sets section use --draws 20 --first-draw 10   # Debian's package descriptions

The machine says "same" where two rows are similar in a view of its own: linear discriminants of the labels, with so
much noise that the best threshold is right for a given share of same and of different pairs. So its mistakes are not
independent: a row that it misunderstands is misunderstood each time.

"section" and "use" are the notions of the texts in benchmarks.texts, of which every draw has other rows. There the
machine knows no labels: it says "same" for the fifth of all pairs whose sentence vectors have the largest cosine, and
the learners have the same vectors. --similar lets it answer so on all sets, by their scaled columns. Compared are

* placed: 40 answers of a person, who is always right and places rows
* person: 40 answers of a person to questions that are chosen as those of the machine
* blind: 400 answers of the machine, taken as those of a person
* audited: 400 answers of the machine, 40 of which are asked of the person too

The questions of the machine are chosen by --strategy. ARI is that of PairClusters, AUC that of distances in
LinearPairLens over random pairs.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import adjusted_rand_score, roc_auc_score
from sklearn.preprocessing import StandardScaler

from benchmarks.league import load
from benchmarks.texts import NOTIONS, encoded, texts
from pairlens import LinearPairLens, PairClusters
from pairlens.asking import Asker, Question, annotate

SETS = ("letter_abcd", "vehicle", "segmentation_test")
ROWS, MACHINE, PERSON = 400, 400, 40
HOW = ("placed", "person", "blind", "audited")
NOISE = np.linspace(0, 6, 49)
SIMILAR = 0.2
"""Share of all pairs of texts that the machine calls the same."""


def machine(X: NDArray[Any], y: NDArray[Any], right: float, seed: int) -> NDArray[np.bool_]:
    """Return which pairs a machine calls the same."""
    rng = np.random.default_rng(seed)
    own = LinearDiscriminantAnalysis(solver="eigen", shrinkage="auto").fit(X, y).transform(X)
    own /= own.std(axis=0).mean()
    same, noise = y[:, None] == y, rng.standard_normal(own.shape)
    said = same
    for size in NOISE:
        blurred = own + size * noise
        apart = ((blurred[:, None] - blurred) ** 2).sum(axis=2)
        limits = np.quantile(apart, np.linspace(0.02, 0.98, 60))
        share = [((apart < limit)[same].mean() + (apart >= limit)[~same].mean()) / 2 for limit in limits]
        said = apart < limits[int(np.argmax(share))]
        if max(share) < right:
            break
    return said


def similar(X: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which pairs a machine calls the same that goes by the cosine of their vectors."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine = unit @ unit.T
    return np.asarray(cosine > np.quantile(cosine[np.triu_indices(len(X), 1)], 1 - SIMILAR))


def problem(
    name: str, right: float, seed: int, by_similarity: bool = False
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Return rows, classes, and which pairs the machine calls the same."""
    if name in NOTIONS:
        rows = np.random.default_rng([seed, 1]).permutation(len(texts()))[:ROWS]
        X = encoded("embedding")[rows]
        return X, pd.factorize(texts()[name])[0][rows], similar(X)
    X, y = load(name, ROWS)
    said = similar(StandardScaler().fit_transform(X)) if by_similarity else machine(X, y, right, seed)
    return X, y, said


def answered(
    X: NDArray[Any], y: NDArray[Any], said: NDArray[np.bool_], how: str, strategy: Any, seed: int, standardize: bool
) -> Asker:
    """Return an asker that knows the answers of a person, of a machine taken for one, or of a machine and audits."""
    strategy = "place" if how == "placed" else strategy
    every = 10**6 if strategy == "random" else 10  # random questions need no view
    asker = Asker(X, standardize=standardize, strategy=strategy, refit_every=every, random_state=seed, overlap=0.12)

    def tell(question: Question | None, same: NDArray[np.bool_]) -> None:
        if question is not None:
            asker.tell(question, "same" if same[question.rows] else "different")

    truth = y[:, None] == y
    if how == "audited":
        annotate(asker, lambda question, _: "same" if said[question.rows] else "different", y, questions=MACHINE)
    for _ in range(
        {"placed": PERSON, "person": PERSON, "audited": min(PERSON, len(asker.audits_due())), "blind": MACHINE}[how]
    ):
        tell(asker.ask("person"), said if how == "blind" else truth)
    return asker


def scores(X: NDArray[Any], y: NDArray[Any], asker: Asker, standardize: bool) -> tuple[float, float]:
    """Return the ARI of PairClusters and the AUC of LinearPairLens."""
    known = asker.constraints()
    found = PairClusters(standardize=standardize, random_state=0).fit(X, constraints=known).labels_
    Z = LinearPairLens(min(5, X.shape[1]), standardize=standardize, random_state=0).fit_transform(X, constraints=known)
    i, j = np.random.default_rng(0).integers(len(X), size=(2, 4000))
    i, j = i[i != j], j[i != j]
    length = np.linalg.norm(Z[i] - Z[j], axis=1)
    return float(adjusted_rand_score(y, found)), float(roc_auc_score(y[i] == y[j], -length))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--first-draw", type=int, default=0)
    parser.add_argument("--strategy", choices=("place", "random", "uncertain"), default="random")
    parser.add_argument("--right", type=float, default=0.9, help="share of same and of different pairs it gets right")
    parser.add_argument("--similar", action="store_true", help="the machine knows no labels, but the rows alone")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, list[tuple[float, float]]] = {how: [] for how in HOW}
    inside = n_runs = 0
    shares: list[tuple[float, float, float, float]] = []
    for name in chosen.sets:
        standardize = name not in NOTIONS
        for seed in range(chosen.first_draw, chosen.first_draw + chosen.draws):
            X, y, said = problem(name, chosen.right, seed, chosen.similar)
            for how, column in found.items():
                asker = answered(X, y, said, how, chosen.strategy, seed, standardize)
                column.append(scores(X, y, asker, standardize))
            (rate,) = asker.error_rates().values()
            own = [q for q, _ in asker.log if q.purpose not in ("overlap", "repeat")]
            wrong = float(np.mean([said[q.rows] != (y[q.rows[0]] == y[q.rows[1]]) for q in own]))
            same, pairs = y[:, None] == y, ~np.eye(len(y), dtype=bool)
            right = (said == same)[pairs].mean(), said[same & pairs].mean(), (~said)[~same].mean()
            shares.append((*right, same[said & pairs].mean()))
            inside, n_runs = inside + (rate.low <= wrong <= rate.high), n_runs + 1
            last = ", ".join(f"{how} {column[-1][0]:.3f} {column[-1][1]:.3f}" for how, column in found.items())
            print(f"{name} {seed}: wrong {wrong:.2f}, said {rate.low:.2f} to {rate.high:.2f}; {last}", flush=True)
    print(f"\nerror rate inside the interval: {inside} of {n_runs}")
    print(
        "right of all pairs {:.2f}, of same ones {:.2f}, of different ones {:.2f}; its same {:.2f}".format(
            *np.mean(shares, axis=0)
        )
    )
    table = {how: np.array(column) for how, column in found.items()}
    for how, values in table.items():
        gain = table["audited"] - values
        error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
        print(
            f"{how:8} ARI {values[:, 0].mean():.3f} AUC {values[:, 1].mean():.3f}; audited is above by "
            f"{gain[:, 0].mean():+.3f} ({error[0]:.3f}) and {gain[:, 1].mean():+.3f} ({error[1]:.3f})"
        )


if __name__ == "__main__":
    main()
