"""SODRPaC: directions for classes that consist of several clusters."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from pairlens._deprecation import DEPRECATED, NOT_GIVEN, RenamedAttribute, former_parameter
from pairlens._sklearn import Interval, StrOptions
from pairlens._warnings import warn_fallback, warn_user
from pairlens.engines import Placement, Rows
from pairlens.exceptions import SupervisionWarning
from pairlens.graphs.edges import default_theta
from pairlens.graphs.nearest import SEARCHES
from pairlens.methods.base import LinearPairTransformer, finite
from pairlens.methods.sodrpac.criterion import Terms
from pairlens.methods.sodrpac.search import held_out_scores
from pairlens.spectral.eigen import Matrix, Pencil, difference
from pairlens.spectral.rowspace import RowSpace
from pairlens.supervision import Constraints

DEFAULT_LAM = 8.0
LAM_GRID = 2.0 ** np.arange(-5, 11)
THETA_GRID = 2.0 ** np.arange(-4, 5)
"""Of the paper; theta in units of the squared mean norm of the centred rows."""


def _inverse(width: float) -> float:
    """gamma of theta, and theta of gamma."""
    return 1.0 / width if width > 0 else float("inf")


class SODRPaC(LinearPairTransformer):
    r"""Subclass-oriented dimension reduction with pairwise constraints.

    Must-links are first turned into cannot-links (:func:`~pairlens.transform_constraints`), for two rows of one class
    may lie in different clusters of it and need not be near. Then the orthonormal leading eigenvectors of

    .. math:: X' \left(P - Q - \frac{\lambda}{n} M\right) X

    are kept: P is the mean over all cannot-links of their squared length times reliability, Q that over the pairs of
    mutual nearest neighbours times the number of neighbours they share, and :math:`M = I - K^{-1/2} U K^{-1/2}` the
    normalised Laplacian of the graph of nearest neighbours with weights :math:`\exp(-\gamma \|x_i - x_j\|^2)`.

    Choose it when classes fall into several clusters, so that true must-links join rows that should not become
    neighbours, and there are cannot-links. Standardise the features first.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of directions to keep. "auto" takes the fewest whose held-out score is within one standard error (or
        0.001) of the best.
    n_neighbors : int, default=3
        Two rows are mutual neighbours if each is among this many nearest of the other.
    n_graph_neighbors : int, default=5
        Neighbours of each row in the graph of the manifold term.
    lam : float or "cv", default=8.0
        Weight :math:`\lambda` of the manifold term; 0 leaves it out. Large values leave only directions in which
        nothing much varies. "cv" tries :math:`2^{-5} \dots 2^{10}`.
    gamma : float, "auto" or "cv", default="auto"
        The weights of neighbours, for reliabilities and for the manifold term, are :math:`\exp(-\gamma d^2)`. "auto" is
        :math:`1 / \delta^2`, with :math:`\delta` the mean norm of the centred rows; "cv" tries
        :math:`2^{-4} / \delta^2 \dots 2^4 / \delta^2`.
    scale : {"mean", "raw_m"}, default="mean"
        Whether the manifold term is a mean over the rows, like the other two, or their sum, as the paper prints it;
        useful values of `lam` are then smaller by the number of rows.
    include_self : bool, default=False
        Count a row among its own neighbours when counting shared ones.
    cv : int, default=5
        Folds over the pairs for "cv" and "auto"; fewer if there are fewer cannot-links.
    random_state : int, RandomState, Generator or None, default=None
        Makes the folds repeatable.
    theta : float, "auto" or "cv", optional
        Former name: :math:`\gamma = 1 / \theta`. It still works, with a FutureWarning.

    Attributes
    ----------
    components_ : array of shape (n_components, n_features)
        Orthonormal directions.
    eigenvalues_ : array of shape (n_components,)
        Value of the criterion in each direction, largest first. They may be negative.
    n_components_ : int
        Number of directions.
    lam_, gamma_ : float
        The values used.
    cv_results_ : dict of arrays
        Held-out scores of the grid, in the form of scikit-learn's ``cv_results_``; only after a search.

    See Also
    --------
    transform_constraints : The first step by itself.

    Notes
    -----
    The paper's text has lost its equations; this is a reconstruction, which corrects the sign of the printed
    objective. Weights of cannot-links count relative to their mean, those of must-links not at all.

    The held-out score is the share of comparisons in which a cannot-link that only the held-out pairs give, by
    themselves or through :func:`~pairlens.transform_constraints`, is longer than a pair of mutual neighbours. This is
    not :meth:`score`, which asks must-links to be short: with several clusters to a class the right directions leave
    many of them long. With fewer than two cannot-links nothing can be held out, and the defaults are used.

    With must-links alone only the last two terms are left, whose directions are those in which neighbours differ least,
    mostly worse than PCA: a warning says so, and another when a given `lam` makes all eigenvalues negative. Without any
    pairs the result is that of PCA.

    References
    ----------
    .. [1] B. Tong, E. Suzuki, "Subclass-oriented dimension reduction with constraint transformation and manifold
       regularization", PAKDD 2010.

    Examples
    --------
    >>> from pairlens import SODRPaC
    >>> from pairlens.datasets import make_subclass_blobs
    >>> X, y, pairs = make_subclass_blobs(random_state=0)
    >>> SODRPaC(n_components=1, lam=32.0).fit(X, constraints=pairs).components_.round(3)
    array([[0.999, 0.032]])
    >>> found = SODRPaC(n_components="auto", lam="cv", random_state=0).fit(X, constraints=pairs)
    >>> found.n_components_
    1
    """

    _rows_may_be: ClassVar = Placement.ANYWHERE_SEARCHED
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_graph_neighbors": [Interval(Integral, 1, None, closed="left")],
        "lam": [Interval(Real, 0, None, closed="left"), StrOptions({"cv"})],
        "gamma": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto", "cv"})],
        "scale": [StrOptions({"mean", "raw_m"})],
        "include_self": ["boolean"],
        "cv": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state", np.random.Generator],
        "theta": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto", "cv"}), NOT_GIVEN],
        "neighbors": [StrOptions(set(SEARCHES))],
    }

    n_components: Any
    theta_ = RenamedAttribute("gamma_", _inverse, deprecated=True)
    gamma_: Any = RenamedAttribute("theta_", _inverse, deprecated=False)

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        n_neighbors: int = 3,
        n_graph_neighbors: int = 5,
        lam: float | str = DEFAULT_LAM,
        gamma: float | str = "auto",
        scale: str = "mean",
        include_self: bool = False,
        cv: int = 5,
        random_state: Any = None,
        theta: float | str = DEPRECATED,
        neighbors: str = "auto",
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.n_graph_neighbors = n_graph_neighbors
        self.lam = lam
        self.gamma = gamma
        self.scale = scale
        self.include_self = include_self
        self.cv = cv
        self.random_state = random_state
        self.theta = theta
        self.neighbors = neighbors

    @property
    def _n_wanted(self) -> int:
        return self.n_components_

    def _solve_in(self, space: RowSpace, known: Constraints) -> Pencil:
        if space.dim == 0:
            return super()._solve_in(space, known)
        attract, repel = self._scatters(space, known)
        # With the covariance on both sides the choice is among all directions in which the rows vary.
        spread = space.covariance()
        values, directions = self._solve(finite(attract + spread), finite(repel + spread))
        if known.n_cannot_link and values[:1].sum() < 0 and self.lam != "cv":
            warn_user(
                f"SODRPaC: with lam={self.lam_:.3g} the criterion is negative in every direction, which leaves those "
                "in which the rows vary least. Lower lam.",
                SupervisionWarning,
            )
        return values, directions

    def _keep(self, space: RowSpace, directions: Matrix, X: Rows) -> None:
        super()._keep(space, directions, X)
        self.n_components_ = len(self.components_)

    def _scatters(self, space: RowSpace, known: Constraints) -> tuple[Matrix, Matrix]:
        if known.n_pairs == 0:
            self._settle(space, self._asked_theta())
            warn_fallback(self, "no pairs were given")
            return np.zeros((space.dim, space.dim)), space.covariance()
        terms = Terms.of(
            space,
            self.n_neighbors,
            self.n_graph_neighbors,
            include_self=self.include_self,
            search=self.neighbors,
        )
        unit = 1.0 if self.scale == "raw_m" else float(space.n_rows)
        theta = self._choose(terms, known, unit)
        if known.n_cannot_link == 0:
            warn_user(
                "SODRPaC: no cannot-links were given, so the directions are merely those in which neighbours differ "
                "least. Give cannot-links by constraints=, or labels of at least two classes by y.",
                SupervisionWarning,
            )
        attract = terms.together + self.lam_ * terms.manifold(theta) / unit
        return attract, terms.apart(known, terms.generate(known), theta)

    def _solve(self, attract: Matrix, repel: Matrix) -> Pencil:
        return difference(attract, repel, self.n_components_)

    def _asked_theta(self) -> float | str:
        """1 / gamma, or "auto" or "cv"."""
        former = former_parameter(self, "theta", "gamma", "gamma = 1 / theta")
        if former is not None:
            return former if isinstance(former, str) else float(former)
        return self.gamma if isinstance(self.gamma, str) else _inverse(float(self.gamma))

    def _settle(self, space: RowSpace, asked: float | str) -> tuple[float, float]:
        """Set what is given, and the defaults for what is to be found; returns theta and its default."""
        self.__dict__.pop("cv_results_", None)
        width = default_theta(space.near_rows)
        theta = width if isinstance(asked, str) else asked
        self.lam_ = DEFAULT_LAM if self.lam == "cv" else float(self.lam)
        self.gamma_ = _inverse(theta)
        self.n_components_ = min(2, space.dim) if self.n_components == "auto" else int(self.n_components)
        return theta, width

    def _choose(self, terms: Terms, known: Constraints, unit: float) -> float:
        """Settle `lam_`, `gamma_` and `n_components_`, by a search where one was asked for; returns theta."""
        asked = self._asked_theta()
        theta, width = self._settle(terms.space, asked)
        wanted = [
            f"{name}={value!r}"
            for name, value in (("lam", self.lam), ("gamma", asked), ("n_components", self.n_components))
            if value == "cv" or (name == "n_components" and value == "auto")
        ]
        n_splits = min(self.cv, known.n_cannot_link)
        if wanted and n_splits < 2:
            warn_user(
                f"SODRPaC: {' and '.join(wanted)} cannot be found from {known.n_cannot_link} cannot-link(s): at least "
                f"2 are needed. lam={self.lam_:.3g}, gamma={self.gamma_:.3g} and n_components={self.n_components_} "
                "are used.",
                SupervisionWarning,
            )
        elif wanted:
            scores = held_out_scores(
                terms,
                known,
                lams=LAM_GRID if self.lam == "cv" else np.array([self.lam_]),
                thetas=width * THETA_GRID if asked == "cv" else np.array([theta]),
                dims=np.arange(1, terms.space.dim + 1)
                if self.n_components == "auto"
                else np.array([self.n_components_]),
                unit=unit,
                n_splits=n_splits,
                random_state=self.random_state,
            )
            self.lam_, theta, self.n_components_ = scores.best()
            self.gamma_ = _inverse(theta)
            self.cv_results_ = scores.table()
        return theta
