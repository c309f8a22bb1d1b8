"""Encode models as JSON and arrays, and decode them.

Bare JSON values stand for themselves. Everything else is an object with one key that says what it is: a tuple, an array
(by the name of its file), an instance of a class on the list with its attributes, and so on.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections import UserList
from collections.abc import Callable
from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import pairlens
from pairlens._sklearn import as_generator
from pairlens.engines import is_tensor
from pairlens.exceptions import MissingExtraError
from pairlens.io._arrays import MAX_EMPTY_AXIS, check_sparse
from pairlens.tables.embedders import StoredAddress

PUBLIC = "pairlens."
"""Public classes are named as users import them: ``pairlens.BWDR``."""

HOMES = {
    "broken-pairs": "pairlens.cluster.pairclusters.BrokenPairs",
    "category-column": "pairlens.tables.columns.CategoryColumn",
    "cluster-mixture": "pairlens.cluster.grouping.Mixture",
    "cluster-view": "pairlens.cluster.grouping.ClusterView",
    "column-block": "pairlens.tables.columns.ColumnBlock",
    "column-summary": "pairlens.tables.roles.ColumnSummary",
    "date-column": "pairlens.tables.columns.DateColumn",
    "diffusion": "pairlens.graphs.nearest.Diffusion",
    "embedded-column": "pairlens.tables.columns.EmbeddedColumn",
    "held-out-pairs": "pairlens.judging.held_out.HeldOutDistances",
    "kernel-features": "pairlens.kernels.KernelFeatures",
    "map-evidence": "pairlens.methods.pairmap.attraction.Evidence",
    "map-held-out-pairs": "pairlens.methods.pairmap.attraction.HeldOutPairs",
    "map-judgement": "pairlens.methods.pairmap.attraction.Judgement",
    "map-spaces": "pairlens.methods.pairmap.estimator.MapSpaces",
    "null-space": "pairlens.kernels.NullSpace",
    "number-column": "pairlens.tables.columns.NumberColumn",
    "pair-model": "pairlens.judging.probability.PairModel",
    "pair-probability": "pairlens.judging.probability.PairProbability",
    "pair-table": "pairlens.supervision.pairs.AnswerTable",
    "prior": "pairlens.learning.learner.Prior",
    "raw-space": "pairlens.learning.spaces.RawSpace",
    "standardiser": "pairlens.spectral.rowspace.Standardiser",
    "stored-address": "pairlens.tables.embedders.StoredAddress",
    "taught-spaces": "pairlens.learning.spaces.TaughtSpaces",
    "text-column": "pairlens.tables.columns.TextColumn",
    "tree-sum": "pairlens.preference.gbwsdr.TreeSum",
    "unit": "pairlens.learning.spaces.Unit",
}
"""What estimators of pairlens keep beside arrays and numbers: a tag that stays, and the class it stands for now."""

SCIKIT_LEARN = (
    "sklearn.compose.ColumnTransformer",
    "sklearn.decomposition.PCA",
    "sklearn.feature_selection.VarianceThreshold",
    "sklearn.impute.SimpleImputer",
    "sklearn.pipeline.Pipeline",
    "sklearn.preprocessing.FunctionTransformer",
    "sklearn.preprocessing.MaxAbsScaler",
    "sklearn.preprocessing.MinMaxScaler",
    "sklearn.preprocessing.Normalizer",
    "sklearn.preprocessing.OneHotEncoder",
    "sklearn.preprocessing.RobustScaler",
    "sklearn.preprocessing.StandardScaler",
)
"""Transformers whose attributes are data, as users import them. A FunctionTransformer can only come without a function:
files hold none."""

SPARSE = ("csr_matrix", "csr_array", "csc_matrix", "csc_array")
REQUESTS = "_metadata_request"
FIELDS: dict[str, tuple[type, ...]] = {
    "bool": (bool, np.bool_),
    "int": (int, np.integer),
    "float": (int, float, np.integer, np.floating),
    "str": (str,),
    "tuple[str, ...]": (tuple,),
    "Block": (np.ndarray,),
    "Float64": (np.ndarray,),
    "IntArray": (np.ndarray,),
    "NDArray[np.bool_]": (np.ndarray,),
    "NDArray[np.float64]": (np.ndarray,),
}
"""By the annotation of a field, what it may hold: code multiplies lists by a bool, and makes as many as an int says."""
METHODS = ("fit", "partial_fit", "predict", "score", "transform", "inverse_transform", "decision_function")


def class_of(tag: Any) -> tuple[str, type] | None:
    """Return the tag and the class that it stands for; None if it is not on the list."""
    if not isinstance(tag, str):
        return None
    if tag in HOMES or tag in SCIKIT_LEARN:
        return tag, _found(HOMES.get(tag, tag))
    public = tag.removeprefix(PUBLIC)
    if tag.startswith(PUBLIC) and public in pairlens.__all__ and isinstance(kind := getattr(pairlens, public), type):
        return tag, kind
    return None


def tag_of(kind: type) -> str | None:
    """Return what files call a class; None if it is not on the list."""
    name = kind.__name__
    if name in pairlens.__all__ and getattr(pairlens, name) is kind:
        return PUBLIC + name
    homes = {**HOMES, **{path: path for path in SCIKIT_LEARN}}
    of_this_name = (tag for tag, home in homes.items() if home.rpartition(".")[2] == name)
    return next((tag for tag in of_this_name if _found(homes[tag]) is kind), None)


def _found(path: str) -> type:
    module, _, attribute = path.rpartition(".")
    return getattr(import_module(module), attribute)


class ModelFileError(ValueError):
    """Report a file that is not a model of pairlens, is damaged, or comes from a newer version."""


class Encoder:
    """Turn a model into JSON values, and collect its arrays by the name of their file."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._names: dict[int, str] = {}
        self._open: list[int] = []

    def encode(self, value: Any, where: str = "the model") -> Any:
        """Return the JSON form of a value; `where` names it in errors."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": str(value)}
        # scikit-learn 1.6 lists the columns of a ColumnTransformer in a UserList that warns when it is read.
        if type(value) is list or isinstance(value, UserList):
            return [self.encode(part, where) for part in getattr(value, "data", value)]
        if type(value) is tuple:
            return {"tuple": [self.encode(part, where) for part in value]}
        if type(value) is dict:
            return {"dict": [[self.encode(key, where), self.encode(part, where)] for key, part in value.items()]}
        return self._special(value, where)

    def _special(self, value: Any, where: str) -> Any:
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if is_tensor(value):
            return self._array(value.cpu().numpy(), where)
        if isinstance(value, np.generic):
            return {"scalar": self._keep(_with_size(np.asarray(value)))}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"type": np.dtype(value).str}
        if type(value) is slice:
            return {"slice": [self.encode(part, where) for part in (value.start, value.stop, value.step)]}
        if sparse.issparse(value) and type(value).__name__ in SPARSE:
            parts = [self._keep(part) for part in (value.data, value.indices, value.indptr)]
            return {"sparse": [type(value).__name__, list(map(int, value.shape)), parts]}
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            # A seed instead of the state, which compiled code would trust. The generator itself does not move on.
            return int(as_generator(deepcopy(value)).integers(2**31 - 1))
        return self._object(value, where)

    def _array(self, array: NDArray[Any], where: str) -> dict[str, Any]:
        if array.dtype == object:
            return {"objects": [list(array.shape), [self.encode(item, where) for item in array.ravel().tolist()]]}
        if array.dtype.hasobject:
            raise TypeError(f"{where} is an array of {array.dtype}, which a model file cannot hold")
        return {"array": self._keep(_with_size(np.asarray(array)))}

    def _keep(self, array: NDArray[Any]) -> str:
        if id(array) not in self._names:
            name = f"arrays/{len(self.arrays)}.npy"
            self.arrays[name] = array
            self._names[id(array)] = name
        return self._names[id(array)]

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        tag = tag_of(type(value))
        if tag is None:
            what = "a function" if callable(value) else f"a {type(value).__module__}.{type(value).__qualname__}"
            raise TypeError(
                f"{where} is {what}, which a model file cannot hold; it holds estimators of pairlens and common "
                "transformers of scikit-learn, made of numbers, text and arrays"
            )
        if id(value) in self._open:
            raise TypeError(f"{where} contains itself, which a model file cannot hold")
        if getattr(value, "memory", None) is not None:
            raise TypeError(f"memory of {type(value).__name__} must be None: a model file cannot hold a cache")
        self._open.append(id(value))
        state = {}
        for attribute, part in _state(value).items():
            place = f"{attribute} of {type(value).__name__}"
            if attribute == REQUESTS:
                requests = {method: dict(getattr(part, method).requests) for method in METHODS if hasattr(part, method)}
                state[attribute] = self.encode({method: found for method, found in requests.items() if found}, place)
            else:
                state[attribute] = self.encode(part, place)
        self._open.pop()
        return {"object": [tag, state]}


def _with_size(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array; text that is all empty gets a type that has a size."""
    return array.astype(f"{array.dtype.kind}1") if array.dtype.itemsize == 0 else array


def _state(value: Any) -> dict[str, Any]:
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return dict(value._asdict())
    if hasattr(value, "__dict__"):
        return dict(vars(value))
    return dict(value.__getstate__())


class Decoder:
    """Turn JSON values back into a model.

    `read` gives the array of a file, and `source` is what errors call the model. At most `budget` bytes of arrays are
    copied: an array that is named often must not fill the memory.
    """

    def __init__(self, read: Callable[[str], NDArray[Any]], source: str, budget: int) -> None:
        self._read = read
        self._source = source
        self._budget = budget
        self._arrays: dict[str, NDArray[Any]] = {}
        self.has_foreign = False
        """Whether the model has parts of scikit-learn, whose attributes may change with its version."""

    def decode(self, value: Any) -> Any:
        """Return the value of a JSON form."""
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, list):
            return [self.decode(part) for part in value]
        if not isinstance(value, dict) or len(value) != 1:
            raise self._damaged("a part of its manifest is malformed")
        ((kind, content),) = value.items()
        makers: dict[str, Callable[[Any], Any]] = {
            "float": {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}.__getitem__,
            "tuple": lambda parts: tuple(self.decode(part) for part in _list(parts)),
            "dict": lambda parts: {self.decode(key): self.decode(part) for key, part in _list(parts)},
            "array": self._array,
            "objects": self._objects,
            "scalar": lambda name: self._array(name)[()],
            "dtype": _plain_dtype,
            "type": lambda name: _plain_dtype(name).type,
            "slice": lambda parts: slice(*(self.decode(part) for part in parts)),
            "sparse": self._sparse,
            "object": self._object,
        }
        if kind not in makers:
            raise self._damaged(f"it holds a {kind!r}, which is unknown")
        try:
            return makers[kind](content)
        except (ModelFileError, MissingExtraError):
            raise
        except Exception as error:
            raise self._damaged(f"its {kind} is malformed ({error})") from error

    def _damaged(self, why: str) -> ModelFileError:
        return ModelFileError(f"{self._source} is damaged: {why}")

    def _array(self, name: Any) -> NDArray[Any]:
        if not isinstance(name, str):
            raise self._damaged("an array has no name")
        if name not in self._arrays:
            self._arrays[name] = self._read(name)
        return self._arrays[name]

    def _copied(self, name: Any) -> NDArray[Any]:
        """Return an array of which something else is made."""
        array = self._array(name)
        self._budget -= array.nbytes
        if self._budget < 0:
            raise self._damaged("it names the same arrays again and again")
        return array

    def _objects(self, content: Any) -> NDArray[Any]:
        shape, items = content
        if max(shape, default=0) > max(len(_list(items)), MAX_EMPTY_AXIS):
            raise self._damaged(f"it holds an array of the shape {tuple(shape)}")
        result = np.empty(len(items), dtype=object)
        result[:] = [self.decode(item) for item in items]
        return result.reshape(shape)

    def _sparse(self, content: Any) -> Any:
        kind, shape, names = content
        if kind not in SPARSE:
            raise self._damaged(f"it holds a {kind!r}, which is unknown")
        data, indices, indptr = map(self._copied, names)
        if len(shape) != 2 or min(shape) < 0 or max(shape) > np.iinfo(np.int32).max:
            raise self._damaged(f"it holds a sparse matrix of the shape {tuple(shape)}")
        matrix = getattr(sparse, kind)((data, indices, indptr), shape=tuple(shape))
        check_sparse(matrix)
        return matrix

    def _object(self, content: Any) -> Any:
        name, encoded = content
        found = class_of(name)
        if found is None:
            raise ModelFileError(
                f"{self._source} is refused: it names {name!r}, which is not among the classes a model is made of"
            )
        tag, kind = found
        requests = self.decode(encoded.pop(REQUESTS, None))
        state = {attribute: self.decode(part) for attribute, part in encoded.items()}
        for attribute in state:
            if not attribute.isidentifier() or attribute.startswith("__"):
                raise self._damaged(f"{attribute!r} is not an attribute")
        if state.get("memory") is not None:
            # A pipeline would read pickles from the folder that this names as soon as it is fitted again.
            raise ModelFileError(f"{self._source} is refused: its pipeline names a folder to cache in")
        self._check_complete(kind, tag, state)
        made = _filled(kind, state)
        if tag.startswith("sklearn."):
            self.has_foreign = True
        if requests:
            routing = made.get_metadata_routing()
            for method, wanted in requests.items():
                for parameter, alias in wanted.items():
                    getattr(routing, method if method in METHODS else "").add_request(param=parameter, alias=alias)
            setattr(made, REQUESTS, routing)
        if tag == "pairlens.TableEncoder":
            made.embed = _without_addresses(made.embed)
        if tag == "pairlens.GBWSDR" and hasattr(made, "_trees"):
            made._trees.check(made.n_features_in_, len(made.components_))
        return made

    def _check_complete(self, kind: type, tag: str, state: dict[str, Any]) -> None:
        """Raise unless every field and parameter is there; fields with a default may be left out."""
        if hasattr(kind, "get_params"):
            expected = set(inspect.signature(kind).parameters)
            shadowed = {attribute for attribute in state if callable(getattr(kind, attribute, None))} - expected
            if shadowed:
                raise self._damaged(f"{min(shadowed)!r} is a method of {tag}, not an attribute")
        elif dataclasses.is_dataclass(kind):
            fields = dataclasses.fields(kind)
            for field in fields:
                if field.default is not dataclasses.MISSING:
                    state.setdefault(field.name, field.default)
            expected = {field.name for field in fields}
            for field in fields:
                if field.name in state and not _fits(state[field.name], str(field.type)):
                    raise self._damaged(f"{field.name!r} of {tag} is not of the type {field.type}")
        else:
            return
        missing = expected - set(state)
        if missing:
            raise self._damaged(f"{tag} lacks {min(missing)!r}")


def _filled(kind: type, state: dict[str, Any]) -> Any:
    """Return an instance with these attributes, made without calling its constructor."""
    if issubclass(kind, tuple):
        return kind(**state)
    made = object.__new__(kind)
    if hasattr(made, "__dict__"):
        vars(made).update(state)
    else:
        made.__setstate__(state)  # type: ignore[attr-defined]
    return made


def _without_addresses(embed: Any) -> Any:
    """Return the models of an encoder with addresses marked as stored: a file must not make anything be sent."""
    if isinstance(embed, dict):
        return {name: _without_addresses(model) for name, model in embed.items()}
    return StoredAddress(embed) if isinstance(embed, str) and "://" in embed else embed


def _fits(value: Any, annotation: str) -> bool:
    """Return whether a value may be in a field; annotations that are not on the list take all."""
    plain = annotation.removesuffix(" | None")
    if plain not in FIELDS or (value is None and plain != annotation):
        return True
    if isinstance(value, bool) and plain != "bool":
        return False
    return isinstance(value, FIELDS[plain])


def _plain_dtype(text: Any) -> np.dtype[Any]:
    dtype = np.dtype(text) if isinstance(text, str) else None
    if dtype is None or (dtype.hasobject and dtype.kind != "O") or dtype.names is not None:
        raise ValueError(f"{text!r} is not a type of numbers")
    return dtype


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, not {type(value).__name__}")
    return value
