"""The tables of the league: means over sets, ranks, wins, paired standard errors, time and memory."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

__all__ = ["BASELINE", "TITLES", "Record", "Scores", "page", "scores_by_dim"]

BASELINE = "PCA"
TITLES = {"2": "2 directions", "5": "5 directions", "k-1": "min(k - 1, 10) directions"}
"""Numbers of directions as they are called; k is the number of classes."""
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Record:
    """The scores of one method on one split with one draw of pairs; memory in MiB, `error` empty if all went well."""

    set: str
    split: int
    n_pairs: int
    noise: float
    dim: str
    method: str
    ari: float
    f_score: float
    nearest: float
    seconds: float
    memory: float
    error: str


@dataclass(frozen=True)
class Scores:
    """Means over splits: axes are methods, settings and sets."""

    methods: list[str]
    settings: list[tuple[int, float]]
    sets: list[str]
    ari: Array
    f_score: Array
    nearest: Array
    seconds: Array
    memory: Array

    @classmethod
    def of(cls, records: Iterable[Record]) -> Scores:
        """From the records of one number of directions; what not all methods have is left out."""
        cells: dict[tuple[str, tuple[int, float], str], list[Record]] = defaultdict(list)
        for record in records:
            cells[record.method, (record.n_pairs, record.noise), record.set].append(record)
        methods = sorted({method for method, _, _ in cells})
        settings = sorted({setting for _, setting, _ in cells})
        sets = sorted(
            name
            for name in {name for _, _, name in cells}
            if all((method, setting, name) in cells for method in methods for setting in settings)
        )

        def table(what: str) -> Array:
            means = [
                [[np.mean([getattr(r, what) for r in cells[m, s, name]]) for name in sets] for s in settings]
                for m in methods
            ]
            return np.array(means, dtype=np.float64).reshape(len(methods), len(settings), len(sets))

        return cls(
            methods, settings, sets, *(table(what) for what in ("ari", "f_score", "nearest", "seconds", "memory"))
        )

    def ranks(self) -> Array:
        """Rank of each method in each setting and set, 1 the best; equals share the mean of their ranks."""
        return np.asarray(rankdata(-self.ari.round(12), axis=0))

    def family_ranks(self) -> Array:
        """Mean rank of each method, where sets that are parts or versions of one another have one vote together."""
        families = np.array([re.match("[a-z]*", name, re.IGNORECASE).group() for name in self.sets])  # type: ignore[union-attr]
        by_set = self.ranks().mean(axis=1)
        return np.mean([by_set[:, families == family].mean(axis=1) for family in np.unique(families)], axis=0)

    def wins(self) -> Array:
        """How many settings and sets each method wins; equals share a win."""
        best = self.ari.round(12) == self.ari.round(12).max(axis=0)
        return np.asarray((best / best.sum(axis=0)).sum(axis=(1, 2)))

    def gains(self) -> tuple[Array, Array]:
        """Mean ARI above the baseline, paired by set, and its standard error over the sets."""
        by_set = (self.ari - self.ari[self.methods.index(BASELINE)]).mean(axis=1)
        n = len(self.sets)
        error = by_set.std(axis=1, ddof=1) / np.sqrt(n) if n > 1 else np.full(len(by_set), np.nan)
        return by_set.mean(axis=1), error


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [list(header), ["---", *["---:"] * (len(header) - 1)], *(list(row) for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def overall(scores: Scores) -> str:
    """One line a method, best mean rank first."""
    rank, by_family, wins = scores.ranks().mean(axis=(1, 2)), scores.family_ranks(), scores.wins()
    gain, error = scores.gains() if BASELINE in scores.methods else (np.full(len(rank), np.nan),) * 2
    rows = [
        (
            scores.methods[m],
            f"{scores.ari[m].mean():.3f}",
            f"{gain[m]:+.3f} ({error[m]:.3f})",
            f"{rank[m]:.2f}",
            f"{by_family[m]:.2f}",
            f"{wins[m]:.1f}",
            f"{scores.f_score[m].mean():.3f}",
            f"{scores.nearest[m].mean():.3f}",
            f"{scores.seconds[m].mean():.3f}",
            f"{scores.memory[m].max():.0f}",
        )
        for m in np.argsort(rank, kind="stable")
    ]
    header = (
        *("method", "ARI", f"above {BASELINE} (s.e.)", "mean rank", "by family", "wins", "F", "1-NN", "s a fit"),
        "MiB at most",
    )
    return markdown(header, rows)


def by_setting(scores: Scores) -> str:
    """Mean ARI of each method for each number of pairs and share of wrong answers."""
    header = ["method", *(f"{n_pairs}, {noise:.0%}" for n_pairs, noise in scores.settings)]
    mean = scores.ari.mean(axis=2)
    best = mean.max(axis=0)
    rows = [
        [scores.methods[m], *(f"**{v:.3f}**" if v == b else f"{v:.3f}" for v, b in zip(mean[m], best))]
        for m in np.argsort(scores.ranks().mean(axis=(1, 2)), kind="stable")
    ]
    return markdown(header, rows)


def failures(records: Iterable[Record]) -> str:
    """How often each method failed, and one of its errors."""
    found: dict[str, list[str]] = defaultdict(list)
    for record in records:
        if record.error:
            found[record.method].append(f"{record.set}: {record.error}")
    lines = [f"- {method}: {len(errors)} times, for example {errors[0]}" for method, errors in sorted(found.items())]
    return "\n".join(lines) or "None."


def scores_by_dim(records: list[Record]) -> dict[str, Scores]:
    """The scores for each number of directions."""
    dims = [dim for dim in TITLES if any(record.dim == dim for record in records)]
    return {dim: Scores.of(record for record in records if record.dim == dim) for dim in dims}


def page(records: list[Record], command: str, max_rows: int, picture: str | None = None) -> str:
    """The whole page: what `command` found, and the address of a picture of it."""
    tables = scores_by_dim(records)
    sets = next(iter(tables.values())).sets
    n_splits = len({record.split for record in records})
    parts = [
        "# The league",
        f"`{command}`: {len(sets)} data sets of at most {max_rows} rows, {n_splits} split"
        f"{'s' if n_splits > 1 else ''}. Sets: {', '.join(sets)}.",
        "Each method learns a view of the training rows (60 %, z-scored) with its default parameters. The pairs are "
        "drawn uniformly and answered according to the labels, some of them wrongly. The test rows are projected and "
        "clustered by k-means with the true number of classes k. ARI: adjusted Rand index of the clusters (chance 0, "
        "perfect 1); F: pairwise F-score, which rewards one big cluster; 1-NN: accuracy with the training rows. "
        f"*above {BASELINE}*: paired difference of the ARI, with its standard error over the data sets. *mean rank* "
        "and *wins* are by ARI over data sets and settings; ties are shared. *by family*: the mean rank if sets that "
        "are parts or versions of one another (their names begin with the same letters) have one vote together. *s a "
        "fit*: seconds for each fit on one core of a machine that may have other load. *MiB at most*: the largest "
        "additional memory of a fit. Methods are in the order of their mean rank.",
        "In the tables by setting, columns are the number of pairs and the share of wrong answers.",
        "What to keep in mind: the constants of PairLens were chosen on ten data sets by their test scores, and some "
        "of these sets are among those of the league. Pairs and mistakes are drawn uniformly; those of people are "
        "not. With no pairs at all, the local prior of PairLens is already better than PCA, and up to 60 pairs of "
        "which a fifth are wrong add almost nothing. For 1-NN, all features remain the best space. Some sets are "
        "parts or versions of others (mfeat, isolet, coil20, mnist, monks, kddcup99, letter, hill_valley), so "
        "standard errors over sets are too small.",
    ]
    if picture is not None:
        parts.append(f"![Mean ARI over the number of pairs]({picture})")
    for dim, scores in tables.items():
        parts += [f"## {TITLES[dim]}", overall(scores), "Mean ARI by setting:", by_setting(scores)]
    parts += ["## Failures", "A method that fails scores zero.", failures(records)]
    return "\n\n".join(parts) + "\n"
