"""PairMap: a neighbour map that answers improve, from its parts.

Spaces (rules 1 and 3) → evidence (2) → probabilities (4) → affinities (5) → layout (6) → placement of new rows (7). The
numbers are those of the rules in docs/maps.md.
"""
