"""Write linear models, with the scaling in front of them, as ONNX."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._atomic import atomic_path
from pairlens._optional import require
from pairlens._version import __version__

OPSET = 18
IR_VERSION = 9
"""Of ONNX 1.14 (2023): old enough for the runtimes people have, new enough for all that is used here."""


def export_onnx(model: Any, path: str | os.PathLike[str], *, dtype: str = "float32") -> None:
    """Write a fitted linear model, or a pipeline of scalers that ends in one, as an ONNX file.

    The file takes a matrix `X` of rows and gives their `embedding`. Inside it computes with 64 bits and subtracts means
    first, so that rows far from zero keep their digits.

    Parameters
    ----------
    model : estimator
        Any linear method of pairlens, PCA, or a pipeline of StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler,
        SimpleImputer, PCA and TableEncoder (of numbers alone) that ends in one of these.
    path : str or path
        Where to. A file that is there is replaced, in one step at the end.
    dtype : {"float32", "float64"}, default="float32"
        The numbers that go in and come out.

    Raises
    ------
    TypeError
        If the model is not linear.
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    graph = _Graph(require("onnx", extra="io", purpose="export_onnx"), dtype)
    steps = _steps(model)
    current = graph.start()
    for step in steps:
        current = _append(graph, step, current)
    names = getattr(steps[0], "feature_names_in_", None)
    proto = graph.finish(
        current,
        int(steps[0].n_features_in_),
        len(steps[-1].get_feature_names_out()),
        {} if names is None else {"columns": "\n".join(map(str, names))},
    )
    with atomic_path(path) as partial:
        partial.write_bytes(proto.SerializeToString())


def _steps(model: Any) -> list[Any]:
    """Return the steps that change anything, in order."""
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    return [step for step in steps if step is not None and not isinstance(step, str)]


class _Graph:
    """Collect nodes that follow one another, in 64 bits between the two ends."""

    def __init__(self, onnx: Any, dtype: str) -> None:
        self._onnx = onnx
        self._outer = onnx.TensorProto.FLOAT if dtype == "float32" else onnx.TensorProto.DOUBLE
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def start(self) -> str:
        return self.add("Cast", "X", to=self._onnx.TensorProto.DOUBLE)

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        name = f"c{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def add(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        name = output or f"t{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def finish(self, current: str, n_in: int, n_out: int, properties: dict[str, str]) -> Any:
        helper = self._onnx.helper
        self.add("Cast", current, output="embedding", to=self._outer)
        graph = helper.make_graph(
            self._nodes,
            "pairlens",
            [helper.make_tensor_value_info("X", self._outer, ["rows", n_in])],
            [helper.make_tensor_value_info("embedding", self._outer, ["rows", n_out])],
            self._constants,
        )
        proto = helper.make_model(
            graph,
            producer_name="pairlens",
            producer_version=__version__,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        helper.set_model_props(proto, properties)
        self._onnx.checker.check_model(proto, full_check=True)
        return proto


def _append(graph: _Graph, step: Any, current: str) -> str:
    from sklearn.decomposition import PCA
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    from pairlens.methods.base import LinearPairTransformer
    from pairlens.preference.metric import MetricLearner
    from pairlens.preference.wsdr import WSDR
    from pairlens.tables import TableEncoder

    writers: list[tuple[tuple[type, ...], Callable[[_Graph, Any, str], str]]] = [
        ((LinearPairTransformer, WSDR, MetricLearner), _linear),
        ((PCA,), _pca),
        ((StandardScaler,), lambda g, s, x: _scaled(g, x, s.mean_ if s.with_mean else None, s.scale_)),
        ((RobustScaler,), lambda g, s, x: _scaled(g, x, s.center_, s.scale_)),
        ((MaxAbsScaler,), lambda g, s, x: _scaled(g, x, None, s.scale_)),
        ((MinMaxScaler,), _min_max),
        ((SimpleImputer,), _imputed),
        ((TableEncoder,), _encoded),
    ]
    for kinds, writer in writers:
        if isinstance(step, kinds):
            return writer(graph, step, current)
    raise TypeError(
        f"{type(step).__name__} is not linear, and ONNX files are written of linear models only: for the same purpose "
        "there are LinearPairLens, WBDR and BWDR"
    )


def _linear(graph: _Graph, step: Any, current: str) -> str:
    centred = graph.add("Sub", current, graph.constant(step.mean_))
    return graph.add("MatMul", centred, graph.constant(np.ascontiguousarray(step.components_.T)))


def _pca(graph: _Graph, step: Any, current: str) -> str:
    projected = _linear(graph, step, current)
    if not step.whiten:
        return projected
    return graph.add("Div", projected, graph.constant(np.sqrt(step.explained_variance_)))


def _scaled(graph: _Graph, current: str, centre: NDArray[Any] | None, scale: NDArray[Any] | None) -> str:
    if centre is not None:
        current = graph.add("Sub", current, graph.constant(centre))
    return current if scale is None else graph.add("Div", current, graph.constant(scale))


def _min_max(graph: _Graph, step: Any, current: str) -> str:
    scaled = graph.add("Mul", current, graph.constant(step.scale_))
    result = graph.add("Add", scaled, graph.constant(step.min_))
    if not step.clip:
        return result
    return graph.add("Clip", result, *(graph.constant(float(end)) for end in step.feature_range))


def _imputed(graph: _Graph, step: Any, current: str) -> str:
    values = np.asarray(step.statistics_)
    is_missing = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    if not is_missing or step.add_indicator or values.dtype.kind != "f" or np.isnan(values).any():
        raise TypeError("only a SimpleImputer of NaN by numbers, with a value for every column, is written as ONNX")
    return graph.add("Where", graph.add("IsNaN", current), graph.constant(values), current)


def _encoded(graph: _Graph, step: Any, current: str) -> str:
    """Add the numbers of a table: missing ones take the median, then each is centred and scaled."""
    from pairlens.tables import Role

    blocks = step.number_blocks()
    if blocks is None or any(len(block.names) > 1 for block in blocks):
        others = [column.name for column in step.columns_ if column.n_features and column.role != Role.number]
        what = f"the columns {', '.join(map(repr, others))}" if others else "where numbers are missing"
        raise TypeError(
            f"a TableEncoder that encodes {what} cannot be written as ONNX, which takes numbers alone: leave them out "
            "by drop= and fit again, or use the model by pairlens transform"
        )
    names = [column.name for column in step.columns_]
    places = [names.index(block.name) for block in blocks]
    chosen = graph.add("Gather", current, graph.constant(places, np.int64), axis=1)
    medians = graph.constant([block.encoding.median for block in blocks])
    filled = graph.add("Where", graph.add("IsNaN", chosen), medians, chosen)
    scaled = _scaled(
        graph,
        filled,
        np.array([block.encoding.mean for block in blocks]),
        np.array([block.encoding.deviation for block in blocks]),
    )
    centred = graph.add("Sub", scaled, graph.constant(np.concatenate([block.mean for block in blocks])))
    return graph.add("Mul", centred, graph.constant([block.scale for block in blocks]))
