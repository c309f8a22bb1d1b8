"""PairClusters: a group for every row, from few and noisy answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import ClassifierTags
from sklearn.utils.validation import check_is_fitted

from pairlens._optional import require
from pairlens._sklearn import AUTO, COUNT, SEED, Interval, StrOptions, as_generator, estimator, fit_context, parameter
from pairlens._warnings import warn_user
from pairlens.cluster.grouping import ClusterView, Evidence, Learned, Mixture, find_groups, learn, likeliest
from pairlens.engines import Float64, IntArray, Rows, checked_rows, threads_for
from pairlens.exceptions import ArgumentError, SupervisionWarning
from pairlens.graphs.nearest import SEARCHES
from pairlens.supervision import Constraints
from pairlens.supervision.combined import combine

MOST_LISTED = 100_000
"""Pairs that are looked at for those that groups break; of more, as many are drawn."""


@dataclass(frozen=True)
class BrokenPairs:
    """Answers that the groups do not follow: must-links between groups (+1), and cannot-links inside a group (-1).

    An answer is `contradicted` where other answers, which the groups follow, say the contrary. Where they do not, the
    places of the rows speak against it.
    """

    pairs: IntArray
    link: IntArray
    contradicted: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def reasons(self) -> list[str]:
        """Reasons for which they are broken, in words."""
        words = {
            (1, True): "other answers keep the two apart",
            (-1, True): "other answers join the two",
            (1, False): "the rows are like those of different groups",
            (-1, False): "the rows are like those of one group",
        }
        return [words[int(link), bool(other)] for link, other in zip(self.link, self.contradicted)]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns a, b, link and reason."""
        pandas = require("pandas", extra="io", purpose="BrokenPairs.to_frame")
        link = np.where(self.link > 0, "must", "cannot")
        return pandas.DataFrame({"a": self.pairs[:, 0], "b": self.pairs[:, 1], "link": link, "reason": self.reasons})


@estimator
class PairClusters(ClusterMixin, BaseEstimator):
    r"""A group for every row, from few and noisy answers.

    The pair learner of :class:`PairLens` finds a view of ten directions and the probability that two rows belong
    together, P(same). Groups there are normal distributions of one width. Answers are evidence beside the places of the
    rows: row i belongs to group c with the probability

    .. math::
        q_{ic} \propto \pi_c \exp\Bigl(-\frac{\|z_i - m_c\|^2}{2 v} + \sum_j w_{ij} q_{jc}\Bigr), \qquad
        w_{ij} = \pm \log\frac{1 - e}{e},

    with the estimated share e of wrong answers, a plus for must-links and a minus for cannot-links. The number of
    groups is that for which the likelihood of the answers and the adjusted Rand index that P(same) lets expect are
    largest together (:mod:`pairlens.cluster.grouping`). So groups that no answer named are found too.

    Choose it when groups are wanted, and their number is not known.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of groups, at most the number of rows. "auto" finds it from the answers and the rows.
    about : int or None, default=None
        A guess at the number of groups, if `n_clusters` is "auto". Half or twice as many groups have to be better by as
        much as ten answers.
    doubt : float or None, default=None
        Rows whose group is wrong with a higher probability than this get the label -1; None labels all rows.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Group of each row, -1 where it is in doubt. Groups are numbered by their first row.
    probabilities_ : array of shape (n_samples,)
        Probability of the group of each row, also where its label is -1.
    n_clusters_ : int
        Number of groups.
    error_rate_ : float
        Estimated share of wrong answers.
    broken_ : BrokenPairs
        The must-links and cannot-links that the groups do not follow, and why: with the arrays ``pairs``, ``link`` and
        ``contradicted``, the list ``reasons``, and ``to_frame()``.

    See Also
    --------
    PairLens : The view.
    SKKMeans : Clusters of a given number, in which must-links always hold.

    Notes
    -----
    ``labels_`` knows the answers about its rows. :meth:`predict` sees rows as they are: a row in pairs may be put
    elsewhere.

    Of more than 10,000 rows it learns from that many landmarks, and chooses the number of groups by 1,000 of them; the
    others are placed in the groups. Without any pairs it finds the groups of the rows alone, and the number with the
    largest silhouette of the rows as they are.

    References
    ----------
    .. [1] The method is this library's own: docs/clusters.md shows how it stands.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pairlens import Constraints, PairClusters
    >>> X, y = load_wine(return_X_y=True)
    >>> pairs = Constraints.from_labels(y, n_pairs=60, random_state=0)
    >>> model = PairClusters(random_state=0).fit(X, constraints=pairs)
    >>> model.n_clusters_, len(model.labels_)
    (3, 178)
    """

    labels_: NDArray[np.int64] = field(init=False)
    probabilities_: Float64 = field(init=False)
    n_clusters_: int = field(init=False)

    __metadata_request__fit: ClassVar = {"constraints": True}
    n_clusters: int | str = parameter(COUNT, AUTO, default="auto", kw_only=False)
    about: int | None = parameter(COUNT, None, default=None)
    doubt: float | None = parameter(Interval(Real, 0, 1, closed="both"), None, default=None)
    neighbors: str = parameter(StrOptions(set(SEARCHES)), default="auto")
    standardize: bool = parameter("boolean", default=True)
    random_state: Any = parameter(*SEED, default=None)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None) -> Self:
        """Find the groups.

        Parameters
        ----------
        X, y, constraints
            As for :class:`PairLens`. X may be a dask array or data frame, or a torch tensor.

        Returns
        -------
        self : object
        """
        rows = checked_rows(self, X, fitting=True, in_memory=False, power=1 if self.standardize else 2)
        n_rows = rows.shape[0]
        if not isinstance(self.n_clusters, str) and self.n_clusters > n_rows:
            raise ArgumentError("n_clusters", self.n_clusters, f"must be at most the number of rows, {n_rows}")
        known = combine(y, constraints, n_rows)
        rng = as_generator(self.random_state)
        with threads_for(rows.shape):
            learned = learn(
                rows, known, rng, standardize=self.standardize, search=self.neighbors, who=type(self).__name__
            )
            self._group(rows, learned, rng)
        self.error_rate_ = 0.0 if learned is None else learned.mistakes
        self.broken_ = broken_pairs(self.labels_, known, rng)
        if self.doubt is not None:
            self.labels_ = np.where(1 - self.probabilities_ > self.doubt, -1, self.labels_)
        if not isinstance(self.n_clusters, str) and self.n_clusters_ < self.n_clusters:
            warn_user(
                f"PairClusters found {self.n_clusters_} groups of the n_clusters={self.n_clusters} asked for: the rows "
                "and answers given make no more.",
                SupervisionWarning,
            )
        return self

    @np.errstate(under="ignore")
    def _group(self, rows: Rows, learned: Learned | None, rng: np.random.Generator) -> None:
        """Find the groups of the rows to learn from, and put the others in them."""
        self._view: ClusterView | None = None
        self._groups: Mixture | None = None
        if learned is None:
            # All rows are equal.
            self.labels_ = np.zeros(rows.shape[0], dtype=np.int64)
            self.probabilities_, self.n_clusters_ = np.ones(rows.shape[0]), 1
            return
        self._view = learned.view
        n_clusters = None if self.n_clusters == "auto" else int(self.n_clusters)
        groups = find_groups(learned, n_clusters, self.about, rng)
        Z = learned.rows if learned.landmarks is None else learned.view(rows)
        numbers = np.arange(len(Z)) if learned.landmarks is None else learned.landmarks
        evidence = Evidence.of(learned.known, learned.mistakes)
        evidence = Evidence(numbers[evidence.rows], evidence.weight)
        self._groups, self.labels_, self.probabilities_ = settled(Z, groups, evidence)
        self.n_clusters_ = len(self._groups)

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return the likeliest group of rows by their places, -1 where it is in doubt.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows of :meth:`fit` or new ones.

        Returns
        -------
        labels : array of shape (n_samples,)
        """
        q = self.predict_proba(X)
        labels = np.argmax(q, axis=1)
        return labels if self.doubt is None else np.where(1 - q.max(axis=1) > self.doubt, -1, labels)

    @np.errstate(under="ignore")
    def predict_proba(self, X: ArrayLike) -> Float64:
        """Return the probability of each group for rows, by their places.

        The sum of a row is at most 1. The rest is the probability that it is in a group that was not found.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Rows of :meth:`fit` or new ones.

        Returns
        -------
        probabilities : array of shape (n_samples, `n_clusters_`)
        """
        check_is_fitted(self)
        rows = checked_rows(self, X, fitting=False, in_memory=False)
        if self._view is None or self._groups is None:
            return np.ones((rows.shape[0], 1))
        with threads_for(rows.shape):
            return self._groups.probabilities(self._view(rows))

    def fit_predict(
        self, X: ArrayLike, y: ArrayLike | None = None, *, constraints: Constraints | None = None
    ) -> NDArray[np.int64]:
        """Find the groups and return the labels; see :meth:`fit`."""
        return self.fit(X, y, constraints=constraints).labels_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # scikit-learn's check of predict_proba looks here, of whatever kind the estimator is.
        tags.classifier_tags = ClassifierTags()
        return tags


def settled(Z: Float64, mixture: Mixture, evidence: Evidence) -> tuple[Mixture, NDArray[np.int64], Float64]:
    """Put rows in groups by their places and the answers, leave out groups that no row is in, and number the others.

    Return the groups in the order of their first rows, the label of each row, and the probability of its group.
    """
    while True:
        labels, chance = likeliest(Z, mixture, evidence)
        found, first = np.unique(labels, return_index=True)
        if len(found) == len(mixture):
            order = np.argsort(first)
            return mixture.kept(order), np.argsort(order)[labels].astype(np.int64), chance
        mixture = mixture.kept(found)


def broken_pairs(labels: IntArray, known: Constraints, rng: np.random.Generator) -> BrokenPairs:
    """Return the answers that groups do not follow."""
    if known.n_pairs > MOST_LISTED:
        known = known.sample(MOST_LISTED, rng)
    must, cannot = known.must_link, known.cannot_link
    torn, joined = labels[must[:, 0]] != labels[must[:, 1]], labels[cannot[:, 0]] == labels[cannot[:, 1]]
    n = len(labels)
    followed = must[~torn]
    graph = sparse.coo_matrix((np.ones(len(followed)), (followed[:, 0], followed[:, 1])), shape=(n, n))
    chain = connected_components(graph, directed=False)[1].astype(np.int64)

    def ends(pairs: IntArray) -> IntArray:
        return np.asarray(np.sort(chain[pairs], axis=1) @ np.array([n, 1]))

    apart = np.isin(ends(must[torn]), ends(cannot[~joined]))
    together = chain[cannot[joined, 0]] == chain[cannot[joined, 1]]
    link = np.repeat([1, -1], [int(torn.sum()), int(joined.sum())])
    return BrokenPairs(np.concatenate([must[torn], cannot[joined]]), link, np.concatenate([apart, together]))
