"""RankSVM: a linear ranking from preferences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pairlens._sklearn import Interval, StrOptions, check_is_fitted
from pairlens._warnings import warn_user
from pairlens.engines import Float64, IntArray, Rows, fitting_threads
from pairlens.exceptions import SupervisionWarning
from pairlens.preference._base import PreferenceEstimator
from pairlens.preference.pairs import Pairs
from pairlens.preference.ranking import folds, rank_svm, select
from pairlens.supervision import Preferences

C_PATH = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0)


class RankSVM(PreferenceEstimator):
    r"""Linear ranking with a large margin.

    Weights w that minimise

    .. math:: \tfrac12 \|w\|^2 + C\, \mathrm{mean}_m \max(0, 1 - w \cdot (x_i - x_j))^2

    over the preferences m = (i better than j).

    Choose it when a ranking is all you need, and beside every reduction to fewer dimensions as a control: on the data
    that we measured no linear reduction ranks better than RankSVM on all features. Standardise the features first.

    Parameters
    ----------
    C : float or "auto", default=1.0
        Weight of the errors, taken as a mean, so that it does not depend on the number of preferences. "auto" takes the
        best of 0.001, 0.01, ..., 100 by cross-validation in which rows, with their preferences, are held out; each
        value starts from the solution of the one before.
    cv : int, default=5
        Number of folds for ``C="auto"``.
    max_pairs : int, default=200000
        If `y` implies more preferences, this many are drawn.
    tol : float, default=1e-6
        Stop when the norm of the gradient, relative to that of the zero ranking, is below this.
    max_iter : int, default=100
        Most Newton steps.
    random_state : int, RandomState, Generator or None, default=None
        For the draw of pairs and folds.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The weights w.
    C_ : float
        The C used.
    cv_scores_ : dict
        Mean held-out pairwise accuracy by C; for ``C="auto"`` only.
    n_iter_ : int
        Newton steps of the last fit.

    See Also
    --------
    WSDR : A linear view of `n_components` dimensions from preferences, and a ranking in it.

    Notes
    -----
    A piecewise quadratic problem: Newton steps with an exact line search reach the optimum in a few steps, each solved
    by conjugate gradients that cost O(n_samples * n_features + n_pairs) per product. Sparse X stays sparse.

    References
    ----------
    .. [1] T. Joachims, "Optimizing search engines using clickthrough data", KDD 2002.
    .. [2] O. Chapelle and S. S. Keerthi, "Efficient algorithms for ranking with SVMs", Information Retrieval 13, 2010.

    Examples
    --------
    >>> from pairlens import Preferences, RankSVM
    >>> X = [[1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]
    >>> ranker = RankSVM().fit(X, preferences=Preferences([(2, 1), (1, 0)], n_samples=3))
    >>> ranker.rank(X)
    array([2, 1, 0])
    """

    coef_: NDArray[Any]

    _power: ClassVar = 4
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "max_pairs": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
    }

    def __init__(
        self,
        C: float | str = 1.0,
        *,
        cv: int = 5,
        max_pairs: int = 200_000,
        tol: float = 1e-6,
        max_iter: int = 100,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.cv = cv
        self.max_pairs = max_pairs
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _check(self, rows: Rows, y: ArrayLike | None, preferences: Preferences | None) -> None:
        if y is None and preferences is None:
            raise ValueError(
                "RankSVM requires y to be passed, but the target y is None, and so is preferences: give ordinal "
                "scores by y, or pairs by preferences=."
            )

    def _learn(self, rows: Rows, known: Preferences, rng: np.random.Generator) -> None:
        if known.n_pairs == 0:
            raise ValueError("RankSVM needs at least one preference, but y has one level only and there are no pairs.")
        used = known.rows
        pairs = Pairs.of(np.searchsorted(used, known.pairs), len(used), known.weight)
        inside = rows[used].astype(np.float64)
        weights, self.n_iter_ = None, 0
        with fitting_threads(inside.shape[0] * inside.shape[1]):
            values = [float(self.C)] if self.C != "auto" else self._search(inside, pairs, rng)
            for C in values:
                weights, self.n_iter_ = rank_svm(inside, pairs, C, start=weights, tol=self.tol, max_iter=self.max_iter)
        assert weights is not None
        if not weights.any():
            warn_user(
                "RankSVM: the preferences cancel out, or are between equal rows, so all rows have the same score.",
                SupervisionWarning,
            )
        self.C_ = values[-1]
        self.coef_ = weights.astype(rows.dtype)

    def _search(self, rows: Rows, pairs: Pairs, rng: np.random.Generator) -> list[float]:
        """Return the values of C up to the best one."""

        def path(train: NDArray[np.bool_]) -> Iterator[Callable[[Rows], Float64]]:
            part, weights = pairs.select(train), None
            for C in C_PATH:
                weights, _ = rank_svm(rows, part, C, start=weights, tol=1e-4, max_iter=self.max_iter)
                yield lambda Z, w=weights: np.asarray(Z @ w)  # type: ignore[misc]

        found = select(rows, pairs, folds(pairs, self.cv, rng), path)
        self.cv_scores_ = dict(zip(C_PATH, found.scores.tolist()))
        return list(C_PATH[: found.best + 1])

    def decision_function(self, X: ArrayLike) -> NDArray[Any]:
        check_is_fitted(self)
        rows = self._read(X, fitting=False)
        return np.asarray(rows @ self.coef_)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return scores that order rows, higher is better; the same as :meth:`decision_function`."""
        return self.decision_function(X)

    def rank(self, X: ArrayLike) -> IntArray:
        """Return numbers of the rows, best first.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        order : int array of shape (n_samples,)
            Rows of equal score stay in the order of X.
        """
        return np.argsort(-self.decision_function(X), kind="stable")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
