"""Find methods by their names, build them, and fit any model, a method or a pipeline that ends in one."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import sklearn
from numpy.typing import ArrayLike

import pairlens
from pairlens.exceptions import InputError
from pairlens.supervision import Constraints, Preferences

ROOMS = ("methods.", "preference.", "cluster.")


def cli_name(name: str) -> str:
    """Return the name of a class in lower case, words apart.

    Examples
    --------
    >>> [cli_name(name) for name in ("PairLens", "LinearPairLens", "KernelBWDR", "SODRPaC", "RankSVM", "WBDR")]
    ['pairlens', 'linear-pairlens', 'kernel-bwdr', 'sodrpac', 'rank-svm', 'wbdr']
    """
    # Three small letters end a word; the name of this library is one.
    return re.sub(r"(?<=[a-z]{3})(?=[A-Z])", "-", name.replace("PairLens", "Pairlens")).lower()


def method_names() -> dict[str, str]:
    """Return class names by their name on the command line, without importing any."""
    classes = sorted(name for name, home in pairlens._HOMES.items() if home.startswith(ROOMS))
    return {cli_name(name): name for name in classes}


def method_class(name: str) -> type[Any]:
    """Return the class of a method; any spelling that differs in case and dashes only will do.

    Examples
    --------
    >>> method_class("KernelBWDR").__name__
    'KernelBWDR'
    >>> method_class("wdbr")
    Traceback (most recent call last):
    ...
    pairlens.exceptions.InputError: there is no method 'wdbr'; did you mean wsdr, wbdr or bwdr?
    """
    names = method_names()
    for known, found in names.items():
        if _plain(known) == _plain(name):
            result: type[Any] = getattr(pairlens, found)
            return result
    near = difflib.get_close_matches(name.lower(), names, n=3, cutoff=0.5)
    hint = (
        f"did you mean {' or '.join([', '.join(near[:-1]), near[-1]] if near[1:] else near)}?"
        if near
        else f"there are {', '.join(names)}"
    )
    raise InputError(f"there is no method {name!r}; {hint}", argument="name", value=name)


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).lower()


def view_methods(source: str) -> list[str]:
    """Return the names of the methods that make a view of few directions from "constraints" or from "preferences"."""
    return [name for name in method_names() if makes_view(cls := method_class(name)) and source in _taken(cls.fit)]


def makes_view(cls: type[Any]) -> bool:
    """Return whether a method maps rows to a number of directions that one can choose."""
    return hasattr(cls, "transform") and "n_components" in _taken(cls)


def takes_dimension(cls: type[Any], n_components: int | str) -> bool:
    """Return whether a method makes a view of `n_components` directions, or finds their number if it is "auto".

    Examples
    --------
    >>> [takes_dimension(method_class(name), 5) for name in ("pairlens", "pairmap")]
    [True, False]
    """
    allowed = getattr(cls, "_parameter_constraints", {}).get("n_components", [])
    return any(hasattr(one, "is_satisfied_by") and one.is_satisfied_by(n_components) for one in allowed)


def _taken(call: Callable[..., Any]) -> Mapping[str, Any]:
    return inspect.signature(call).parameters


def build(name: str, n_components: int | str = 2, seed: int | None = 0) -> Any:
    """Return a method, or a control, with this number of directions and this seed, as far as it has such parameters.

    Examples
    --------
    >>> build("pairlens", 3)
    PairLens(n_components=3, random_state=0)
    >>> build("pca")
    PCA(n_components=2, random_state=0)
    """
    if name in ("none", "tsne"):
        from sklearn.preprocessing import FunctionTransformer

        if name == "none":
            return FunctionTransformer(feature_names_out="one-to-one")
        from pairlens.methods.pairmap.layout import plain_map

        # A map of the rows has one or two dimensions.
        n_components = min(2, n_components) if isinstance(n_components, int) else 2
        chosen = {"n_components": n_components, "standardize": False, "random_state": seed}
        return FunctionTransformer(plain_map, kw_args=chosen)
    if name == "pca":
        from sklearn.decomposition import PCA

        cls: type[Any] = PCA
    else:
        cls = method_class(name)
    values = {"n_components": n_components, "random_state": seed}
    return cls(**{key: value for key, value in values.items() if key in _taken(cls)})


SOURCES = ("constraints", "preferences", "triplets", "quadruplets")


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if hasattr(model, "steps") else model


def learns_from(model: Any) -> frozenset[str]:
    """Return the kinds of answers, such as "constraints", that the `fit` of a model or of its last step takes.

    Examples
    --------
    >>> from pairlens import WBDR, WSDR
    >>> sorted(learns_from(WBDR())), sorted(learns_from(WSDR()))
    (['constraints'], ['preferences'])
    """
    taken = inspect.signature(last_step(model).fit).parameters
    return frozenset(source for source in SOURCES if source in taken)


def fit_model(
    model: Any,
    X: ArrayLike,
    constraints: Constraints | None = None,
    preferences: Preferences | None = None,
) -> Any:
    """Fit a model with those of the given answers that it learns from; returns the model."""
    taken = learns_from(model)
    given = {"constraints": constraints, "preferences": preferences}
    known = {name: answers for name, answers in given.items() if name in taken and answers is not None}
    # Pipelines hand pairs to the step that asks for them only while routing is on.
    with sklearn.config_context(enable_metadata_routing=True):
        return model.fit(X, **known)
