"""Write linear models, with the scaling in front of them, for programs that do not have pairlens."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from pairlens._atomic import atomic_path, write_atomically
from pairlens._optional import require
from pairlens._version import __version__
from pairlens.exceptions import ArgumentError

FORMATS = ("onnx", "safetensors", "sentence-transformers")
"""What a model can be written as."""

DENSE_CONFIG = "config.json"
"""The file that makes a folder a module of sentence-transformers."""

OPSET = 18
IR_VERSION = 9
"""Of ONNX 1.14 (2023): old enough for the runtimes people have, new enough for all that is used here."""


class _Operation(NamedTuple):
    """One operation on the columns: an operator of ONNX, or "Fill" for missing numbers, and its constants."""

    operator: str
    constants: tuple[NDArray[Any], ...]


def export(model: Any, path: str | os.PathLike[str], *, to: str, dtype: str = "float32") -> None:
    """Write a fitted linear model, or a pipeline of scalers that ends in one, for other programs.

    Parameters
    ----------
    model : estimator
        Any linear method of pairlens, PCA, or a pipeline of StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler,
        SimpleImputer, PCA and TableEncoder (of numbers alone) that ends in one of these.
    path : str or path
        File to write, or folder for sentence-transformers. A file that is there is replaced, in one step at the end.
    to : {"onnx", "safetensors", "sentence-transformers"}
        - "onnx": a file for ONNX runtimes, which takes a matrix `X` of rows and gives their `embedding`. Inside it
          computes with 64 bits and subtracts means first, so that rows far from zero keep their digits. Needs the
          extra ``io``.
        - "safetensors": one affine map, with the names and shapes of ``torch.nn.Linear``: `weight`, of shape
          (n_components, n_features), and `bias`.
        - "sentence-transformers": a folder that ``Dense.load`` of sentence-transformers reads: a last module, which
          turns the embeddings of a model into the view.

        The last two have no place for missing numbers: columns that an imputer fills must be complete.
    dtype : {"float32", "float64"}, default="float32"
        The numbers that go in and come out, and those of `weight` and `bias`. Modules of sentence-transformers have
        float32.

    Raises
    ------
    TypeError
        If the model is not linear.

    Examples
    --------
    >>> import os, tempfile
    >>> import pairlens
    >>> model = pairlens.LinearPairLens(1).fit([[0, 1], [0, 2], [5, 1], [5, 2]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pairlens.export(model, os.path.join(folder, "adapter"), to="sentence-transformers")
    ...     sorted(os.listdir(os.path.join(folder, "adapter")))
    ['config.json', 'model.safetensors']
    """
    if to not in FORMATS:
        raise ArgumentError("to", to, f"must be one of {', '.join(map(repr, FORMATS))}")
    if dtype not in ("float32", "float64"):
        raise ArgumentError("dtype", dtype, "must be 'float32' or 'float64'")
    if to == "sentence-transformers" and dtype != "float32":
        raise ArgumentError(
            "dtype", dtype, "must be 'float32' for sentence-transformers, whose modules compute with it"
        )
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    steps = [step for step in steps if step is not None and not isinstance(step, str)]
    for step in steps:
        check_is_fitted(step)
    operations = [operation for step in steps for operation in _operations(step)]
    n_features = int(steps[0].n_features_in_)
    names = getattr(steps[0], "feature_names_in_", None)
    properties = {} if names is None else {"columns": "\n".join(map(str, names))}
    if to == "onnx":
        content = _onnx(operations, n_features, len(steps[-1].get_feature_names_out()), dtype, properties)
    else:
        weight, bias = (part.astype(dtype) for part in _affine(operations, n_features))
        dense = to == "sentence-transformers"
        prefix = "linear." if dense else ""
        tensors = {f"{prefix}weight": weight, f"{prefix}bias": bias}
        content = _safetensors(tensors, properties | {"format": "pt"})
        if dense:
            _write_dense(Path(path), content, *weight.shape)
            return
    with atomic_path(path) as partial:
        partial.write_bytes(content)


def _write_dense(folder: Path, tensors: bytes, n_out: int, n_in: int) -> None:
    """Write what Dense.save of sentence-transformers writes."""
    config = {
        "in_features": n_in,
        "out_features": n_out,
        "bias": True,
        "activation_function": "torch.nn.modules.linear.Identity",
        "module_input_name": "sentence_embedding",
        "module_output_name": "sentence_embedding",
    }
    write_atomically(folder / "model.safetensors", tensors)
    write_atomically(folder / DENSE_CONFIG, json.dumps(config, indent=2) + "\n")


def _safetensors(tensors: dict[str, NDArray[Any]], properties: dict[str, str]) -> bytes:
    """Return a file of tensors: the length of the header in eight bytes, the header in JSON, and the numbers."""
    header: dict[str, Any] = {"__metadata__": properties}
    parts: list[bytes] = []
    end = 0
    for name, values in tensors.items():
        parts.append(values.astype(values.dtype.newbyteorder("<")).tobytes())
        start, end = end, end + len(parts[-1])
        kind = f"F{8 * values.itemsize}"
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)  # so that the numbers begin at a multiple of eight
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def _affine(operations: list[_Operation], n_features: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the matrix, of shape (n_components, n_features), and the shift of what is done to complete rows."""
    matrix, shift = np.eye(n_features), np.zeros(n_features)
    for operator, constants in operations:
        if operator == "Clip":
            raise TypeError("a MinMaxScaler with clip=True is not affine: fit again without clip, or export to ONNX")
        if operator == "Fill":
            continue
        (values,) = constants
        if operator == "Sub":
            shift = shift - values
        elif operator == "Add":
            shift = shift + values
        elif operator == "Mul":
            matrix, shift = matrix * values, shift * values
        elif operator == "Div":
            matrix, shift = matrix / values, shift / values
        elif operator == "Gather":
            matrix, shift = matrix[:, values], shift[values]
        else:
            matrix, shift = matrix @ values, shift @ values
    return np.ascontiguousarray(matrix.T), shift


def _onnx(operations: list[_Operation], n_in: int, n_out: int, dtype: str, properties: dict[str, str]) -> bytes:
    """Return an ONNX file: the operations one after the other, in 64 bits between the two ends."""
    onnx = require("onnx", extra="io", purpose="writing ONNX files")
    helper, kinds = onnx.helper, onnx.TensorProto
    outer = kinds.FLOAT if dtype == "float32" else kinds.DOUBLE
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(values: NDArray[Any]) -> str:
        constants.append(onnx.numpy_helper.from_array(values, f"c{len(constants)}"))
        return constants[-1].name

    def add(operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, list(inputs), [output or f"t{len(nodes)}"], **attributes))
        return nodes[-1].output[0]

    current = add("Cast", "X", to=kinds.DOUBLE)
    for operator, values in operations:
        given = [constant(part) for part in values]
        attributes: dict[str, Any] = {"axis": 1} if operator == "Gather" else {}
        if operator == "Fill":
            current = add("Where", add("IsNaN", current), *given, current)
        else:
            current = add(operator, current, *given, **attributes)
    add("Cast", current, output="embedding", to=outer)
    graph = helper.make_graph(
        nodes,
        "pairlens",
        [helper.make_tensor_value_info("X", outer, ["rows", n_in])],
        [helper.make_tensor_value_info("embedding", outer, ["rows", n_out])],
        constants,
    )
    proto = helper.make_model(
        graph,
        producer_name="pairlens",
        producer_version=__version__,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    helper.set_model_props(proto, properties)
    onnx.checker.check_model(proto, full_check=True)
    return proto.SerializeToString()


def _operations(step: Any) -> Iterator[_Operation]:
    """Return what a step does to the columns, in order."""
    from sklearn.decomposition import PCA
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

    from pairlens.methods.base import LinearPairTransformer
    from pairlens.preference.metric import MetricLearner
    from pairlens.preference.wsdr import WSDR
    from pairlens.tables import TableEncoder

    if isinstance(step, TableEncoder):
        yield from _of_encoder(step)
    elif isinstance(step, SimpleImputer):
        yield _of_imputer(step)
    elif isinstance(step, MinMaxScaler):
        yield _operation("Mul", step.scale_)
        yield _operation("Add", step.min_)
        if step.clip:
            yield _operation("Clip", *map(float, step.feature_range))
    elif isinstance(step, (StandardScaler, RobustScaler, MaxAbsScaler)):
        centre = getattr(step, "mean_", None) if isinstance(step, StandardScaler) else getattr(step, "center_", None)
        if centre is not None and getattr(step, "with_mean", True):
            yield _operation("Sub", centre)
        if step.scale_ is not None:
            yield _operation("Div", step.scale_)
    elif isinstance(step, (LinearPairTransformer, WSDR, MetricLearner, PCA)):
        yield _operation("Sub", step.mean_)
        yield _operation("MatMul", np.ascontiguousarray(step.components_.T))
        if isinstance(step, PCA) and step.whiten:
            yield _operation("Div", np.sqrt(step.explained_variance_))
    else:
        raise TypeError(
            f"{type(step).__name__} is not linear, and only linear models can be exported: for the same purpose there "
            "are LinearPairLens, WBDR and BWDR"
        )


def _operation(operator: str, *constants: Any) -> _Operation:
    return _Operation(operator, tuple(np.asarray(values, dtype=np.float64) for values in constants))


def _of_imputer(step: Any) -> _Operation:
    values = np.asarray(step.statistics_)
    is_missing = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    if not is_missing or step.add_indicator or values.dtype.kind != "f" or np.isnan(values).any():
        raise TypeError("only a SimpleImputer of NaN by numbers, with a value for every column, can be exported")
    return _operation("Fill", values)


def _of_encoder(step: Any) -> Iterator[_Operation]:
    """Return the encoding of the numbers of a table: missing ones take the median, then each is centred and scaled."""
    from pairlens.tables import Role

    blocks = step.number_blocks()
    if blocks is None or any(len(block.names) > 1 for block in blocks):
        others = [column.name for column in step.columns_ if column.n_features and column.role != Role.number]
        what = f"the columns {', '.join(map(repr, others))}" if others else "where numbers are missing"
        raise TypeError(
            f"a TableEncoder that encodes {what} cannot be exported, because only numbers go in: leave them out by "
            "drop= and fit again, or use the model by pairlens transform"
        )
    names = [column.name for column in step.columns_]
    yield _Operation("Gather", (np.array([names.index(block.name) for block in blocks], dtype=np.int64),))
    yield _operation("Fill", [block.encoding.median for block in blocks])
    yield _operation("Sub", [block.encoding.mean for block in blocks])
    yield _operation("Div", [block.encoding.deviation for block in blocks])
    yield _operation("Sub", np.concatenate([block.mean for block in blocks]))
    yield _operation("Mul", [block.scale for block in blocks])
