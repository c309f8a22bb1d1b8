r"""How many groups there are: what the answers say, and what the probabilities of pairs of rows say.

Of several groupings that one is best for which the sum of two terms is largest.

The *answers* m give the logarithm of their likelihood: pairs inside a group were said to be the same with an unknown
probability, pairs between groups with another one. Each has a Beta prior, that of right answers in nine of ten, so that
the likelihood is a quotient of Beta functions.

The *rows* give the adjusted Rand index that is expected between the grouping and the truth, where P(same) of the
learner says how probable it is that two rows belong together (Fritsch and Ickstadt 2009 [1]_): with
:math:`s_{ij} = 1` inside groups and means over pairs of rows,

.. math::
    \frac{\overline{s p} - \bar s \bar p}{(\bar s + \bar p) / 2 - \bar s \bar p},

times m + 5. Without P(same), for want of answers, it is five times the mean silhouette of the rows as they are.

References
----------
.. [1] A. Fritsch, K. Ickstadt, "Improved criteria for clustering based on the posterior similarity matrix", Bayesian
   Analysis 4, 2009.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betaln

from pairlens.engines import Float64, IntArray
from pairlens.learning.stack import effective_answers
from pairlens.supervision import Constraints

__all__ = ["agreement", "candidates", "expected_rand", "score"]

RIGHT, WRONG = 4.5, 0.5
"""Answers that the prior counts as, right and wrong."""
ADDED_ANSWERS = 5.0
"""Answers that are added in the second term: without any, the rows decide."""
MOST_GROUPS = 40
"""Groups up to which numbers are tried, unless the answers name more."""


def score(labels: IntArray, known: Constraints, same: Float64 | None, plain: Float64) -> float:
    """Return how good groups are: what the answers and the rows say for them.

    Parameters
    ----------
    labels : int array of shape (n_rows,)
    known : Constraints
    same : array of shape (n_rows, n_rows) or None
        P(same) of all pairs, where it is known.
    plain : array of shape (n_rows, n_features)
        The rows as they are.
    """
    from sklearn.metrics import silhouette_score

    said = agreement(labels, known)
    if same is not None:
        return said + (effective_answers(known) + ADDED_ANSWERS) * expected_rand(labels, same)
    apart = 1 < len(np.unique(labels)) < len(labels)
    return said + (ADDED_ANSWERS * float(silhouette_score(plain, labels)) if apart else 0.0)


def agreement(labels: IntArray, known: Constraints) -> float:
    """Return the logarithm of the likelihood of the answers, given groups.

    Parameters
    ----------
    labels : int array of shape (n_rows,)
    known : Constraints
    """
    total = known.must_link_total + known.cannot_link_total
    each = effective_answers(known) / total if total > 0 else 0.0
    must_inside, must_between = each * _inside_and_between(labels, known.must_link, known.must_link_weight)
    cannot_inside, cannot_between = each * _inside_and_between(labels, known.cannot_link, known.cannot_link_weight)
    inside = betaln(RIGHT + must_inside, WRONG + cannot_inside) - betaln(RIGHT, WRONG)
    between = betaln(RIGHT + cannot_between, WRONG + must_between) - betaln(RIGHT, WRONG)
    return float(inside + between)


def _inside_and_between(labels: IntArray, pairs: IntArray, weight: Float64) -> Float64:
    inside = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    return np.array([weight[inside].sum(), weight[~inside].sum()])


def expected_rand(labels: IntArray, same: Float64) -> float:
    """Return the adjusted Rand index that is to be expected.

    Parameters
    ----------
    labels : int array of shape (n_rows,)
    same : array of shape (n_rows, n_rows)
        P(same) of all pairs, symmetric; the diagonal does not count.

    Examples
    --------
    >>> import numpy as np
    >>> sure = np.kron(np.eye(2), np.ones((2, 2)))
    >>> expected_rand(np.array([0, 0, 1, 1]), sure), expected_rand(np.array([0, 0, 0, 0]), sure)
    (1.0, 0.0)
    """
    n = len(labels)
    member = (labels[:, None] == np.unique(labels)).astype(np.float64)
    pairs = n * (n - 1)
    inside = (float((member.sum(axis=0) ** 2).sum()) - n) / pairs
    diagonal = float(np.trace(same))
    probable = (float(same.sum()) - diagonal) / pairs
    both = (float(np.einsum("ic,ic->", member, same @ member)) - diagonal) / pairs
    largest = (inside + probable) / 2 - inside * probable
    return (both - inside * probable) / largest if largest > 0 else 0.0


def candidates(n_distinct: int, named: int) -> list[int]:
    """Return the numbers of groups to try: all small ones, and larger ones in steps of some 15 %.

    Parameters
    ----------
    n_distinct : int
        Number of rows that differ.
    named : int
        Groups that the answers keep apart.
    """
    most = min(n_distinct, max(MOST_GROUPS, 2 * named))
    found = {1, named}
    while max(found) < most:
        found.add(min(most, max(max(found) + 1, round(1.15 * max(found)))))
    found.update(range(1, min(most, 15) + 1))
    return sorted(k for k in found if 1 <= k <= most)
