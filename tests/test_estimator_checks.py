"""scikit-learn's own checks, all of them, for every estimator there is."""

from __future__ import annotations

import inspect
import re

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import pairlens
from pairlens._sklearn import SHARED, complete_docstring
from tests.estimators import all_estimators

ESTIMATORS = all_estimators()


def _quick(cls):
    """With its defaults; a layout whose quality nobody looks at takes fewer steps."""
    return cls(max_iter=50, early_exaggeration_iter=25) if cls is pairlens.PairMap else cls()


@parametrize_with_checks([_quick(cls) for cls in ESTIMATORS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_every_estimator_is_public():
    assert len(ESTIMATORS) >= 15
    for cls in ESTIMATORS:
        assert getattr(pairlens, cls.__name__) is cls
        assert cls.__name__ in pairlens.__all__


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_docstring_gives_equation_reference_and_example(cls):
    assert cls.__doc__ is not None
    for part in (":math:", "Choose it", "Parameters", "Attributes", "References", "Examples"):
        assert part in cls.__doc__ or (part == ":math:" and ".. math::" in cls.__doc__), f"{cls.__name__} lacks {part}"


def test_docstring_is_completed_by_those_of_the_base_classes():
    """The nearest that says something; parameters in the order of the signature, own attributes first."""

    class Base:
        """Base.

        Parameters
        ----------
        first, second : int
            Two numbers.
        third : int
            Another one.

        Attributes
        ----------
        learnt_ : int
            What was learnt.
        """

        def __init__(self, first, second, third): ...

    class Derived(Base):
        """Derived.

        Parameters
        ----------
        second : int
            Its own.

        Attributes
        ----------
        more_ : int
            What more was learnt.

        Notes
        -----
        A note.
        """

        def __init__(self, second, first): ...

    Base.__module__ = "pairlens.anything"
    complete_docstring(Derived)
    parts = ["Derived.", "Parameters\n----------\nsecond : int\n    Its own.\nfirst, second : int\n    Two numbers."]
    parts += ["Attributes\n----------\nmore_ : int\n    What more was learnt.\nlearnt_ : int\n    What was learnt."]
    parts[-1] += "\n" + SHARED["Attributes"]
    assert Derived.__doc__ == "\n\n".join([*parts, "Notes\n-----\nA note."])


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_docstring_describes_every_parameter_and_no_other(cls):
    """Each by its name in the section of parameters, alone or with others that it shares a line with."""
    section = inspect.getdoc(cls).split("\nParameters\n----------\n")[1].split("\n---")[0]
    lines = re.findall(r"^(\w+(?:, \w+)*)(?: :.*)?$", section, flags=re.MULTILINE)
    described = [name for line in lines for name in line.split(", ") if name != "Attributes"]
    assert sorted(described) == sorted(inspect.signature(cls).parameters)
