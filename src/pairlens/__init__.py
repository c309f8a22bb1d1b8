"""pairlens: a low-dimensional view of data from the little people know about it."""

from pairlens._version import __version__

__all__ = ["__version__"]
