"""PairMap: a neighbour map that answers improve, from its parts.

Spaces (rules 1 and 3 of docs/maps.md) and evidence, probabilities and affinities (2, 4 and 5, in `attraction`) → layout
(6) → placement of new rows (7).
"""
