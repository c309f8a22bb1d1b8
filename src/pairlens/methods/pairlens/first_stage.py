"""The first stage: a linear pair problem in the principal components of the z-scored rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens.engines import IntArray, Rows, rows_in_memory
from pairlens.graphs.nearest import near_graph
from pairlens.judging import HeldOutDistances, PairFolds, held_out_distances
from pairlens.judging.held_out import DEFAULT_PURITY, FEWEST_FOR_PURITY
from pairlens.methods.pairlens.problem import PairProblem
from pairlens.spectral.eigen import Pencil
from pairlens.supervision import Constraints

N_NEIGHBORS = 10
SPREAD = 0.5
IOTA = 0.2
FOLDS = 5
FEWEST_FOR_FOLDS = 2
"""Pairs of a kind below which nothing is held out."""
PURITY_STRENGTH = 3.0
PURITY_COLUMNS = 10


@dataclass(frozen=True)
class FirstStage:
    """What depends on the rows alone: coordinates, neighbours and local scatter. Any pairs can be solved in it.

    Attributes
    ----------
    problem : PairProblem
        The rows in the coordinates of :func:`~pairlens.spectral.rowspace.principal_rows`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints
    >>> from pairlens.methods.pairlens import FirstStage, exact_means, principal_rows
    >>> X, y = load_wine(return_X_y=True)
    >>> stage = FirstStage.of(principal_rows(X, exact_means(X)).rows)
    >>> few, more = (Constraints.from_labels(y, n_pairs=n, random_state=0) for n in (20, 200))
    >>> [stage.view(pairs, strength=3.0, k=2).shape for pairs in (few, more)]
    [(178, 2), (178, 2)]
    """

    problem: PairProblem

    @property
    def nearest(self) -> IntArray:
        """The nearest rows of each row there, of shape (n, n_neighbors)."""
        return self.problem.graph.indices

    @classmethod
    def of(
        cls,
        rows: Rows,
        *,
        n_neighbors: int = N_NEIGHBORS,
        spread: float = SPREAD,
        search: str = "auto",
    ) -> FirstStage:
        """Prepare rows in principal components; `search` is the parameter `neighbors` of the methods."""
        graph = near_graph(rows, n_neighbors, search=search)
        return cls(PairProblem.of(rows, graph, spread=spread, iota=IOTA))

    def columns(self, known: Constraints, strength: float, k: int) -> Rows:
        """The rows in the k leading directions for these pairs, with a prior of the given strength, where they are."""
        return self.problem.along(self.problem.solve(known, strength, k)[1])

    def view(self, known: Constraints, strength: float, k: int) -> NDArray[np.float64]:
        """The same as an array in memory."""
        return np.asarray(rows_in_memory(self.columns(known, strength, k)))

    def held_out(self, folds: PairFolds, strength: float, k: int) -> HeldOutDistances:
        """Distances of held-out pairs in the k leading directions."""
        return held_out_distances(lambda train: self.view(train, strength, k), folds)

    def fit(self, known: Constraints, *, prior: float | str = "auto", random_state: Any = None) -> FirstFit:
        """Choose the strength of the prior from how held-out must-links behave: 2 / purity, unless it is given."""
        fewest = min(known.n_must_link, known.n_cannot_link)
        folds = PairFolds.draw(known, FOLDS, random_state) if fewest >= FEWEST_FOR_FOLDS else None
        purity = DEFAULT_PURITY
        if folds is not None and fewest >= FEWEST_FOR_PURITY:
            purity = self.held_out(folds, PURITY_STRENGTH, PURITY_COLUMNS).purity()
        strength = 2.0 / max(purity, 0.1) if prior == "auto" else float(prior)
        return FirstFit(self, known, folds, purity, strength)


@dataclass(frozen=True)
class FirstFit:
    """The first stage with pairs, and with a prior that suits them.

    Attributes
    ----------
    stage : FirstStage
    known : Constraints
    folds : PairFolds or None
        None with fewer than two pairs of a kind.
    purity : float
        Estimated share of must-links that behave like must-links.
    strength : float
        The c of the prior.
    """

    stage: FirstStage
    known: Constraints
    folds: PairFolds | None
    purity: float
    strength: float

    def directions(self, k: int) -> Pencil:
        """The k leading directions."""
        return self.stage.problem.solve(self.known, self.strength, k)

    def columns(self, k: int, known: Constraints | None = None) -> Rows:
        """The rows in the k leading directions, for other pairs with the same prior if some are given."""
        return self.stage.columns(self.known if known is None else known, self.strength, k)

    def held_out(self, k: int) -> HeldOutDistances | None:
        """Distances of held-out pairs in the k leading directions; None with fewer than two pairs of a kind."""
        return None if self.folds is None else self.stage.held_out(self.folds, self.strength, k)
