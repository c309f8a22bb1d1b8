"""The pair problem that LinearPairLens, PairLens, PairMap and the asker share: spaces, held-out answers, weights.

A table has more than one notion of "same", and the answers decide which one a view shows. One learner
(:mod:`~pairlens.learning.learner`) weighs pairs against a prior, in coordinates where no direction is favoured. It is
applied in three coordinate systems of the rows, which gives three *spaces* (:mod:`~pairlens.learning.spaces`).
*Held-out answers* tell how well distance in each space separates "same" from "different", and that decides the
*weights* with which the spaces stand side by side (:class:`~pairlens.learning.spaces.Stack`). A map is the t-SNE of
this metric, a view of several directions its principal components.
"""
