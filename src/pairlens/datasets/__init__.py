"""Provide data to try things on: generators, and tables in which rows can be "the same" in several ways."""

from pairlens.datasets.generators import make_glyphs, make_subclass_blobs
from pairlens.datasets.penguins import load_penguins

__all__ = ["load_penguins", "make_glyphs", "make_subclass_blobs"]
