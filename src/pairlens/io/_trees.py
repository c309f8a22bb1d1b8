"""Trees of scikit-learn and XGBoost as data: they follow indices in compiled code, so every index is checked first."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require


def is_tree(value: Any) -> bool:
    """Whether this is the compiled part of a tree of scikit-learn."""
    module = sys.modules.get("sklearn.tree._tree")
    return module is not None and isinstance(value, module.Tree)


def tree_parts(tree: Any) -> dict[str, Any]:
    """The arguments and the state of a tree."""
    _, (n_features, n_classes, n_outputs), state = tree.__reduce__()
    return {"n_features": int(n_features), "n_classes": n_classes, "n_outputs": int(n_outputs), **state}


def tree_of(parts: dict[str, Any]) -> Any:
    """A tree from its parts; ValueError if following it could leave its arrays."""
    from sklearn.tree._tree import Tree

    n_features, n_outputs, state = int(parts["n_features"]), int(parts["n_outputs"]), dict(parts)
    nodes, count = np.asarray(state["nodes"]), int(state["node_count"])
    if n_features < 1 or n_outputs < 1 or count < 1 or len(nodes) != count:
        raise ValueError("the tree has odd sizes")
    _check_children(nodes["left_child"], nodes["right_child"], nodes["feature"], n_features)
    tree = Tree(n_features, np.asarray(state.pop("n_classes"), dtype=np.intp), n_outputs)
    tree.__setstate__({key: state[key] for key in ("max_depth", "node_count", "nodes", "values")})
    return tree


def check_tree_model(model: Any) -> None:
    """ValueError if an estimator would hand its tree rows of another width."""
    if not is_tree(model.tree_) or model.tree_.n_features != model.n_features_in_:
        raise ValueError("the tree does not fit the number of features")


def is_booster(value: Any) -> bool:
    """Whether this is a model of XGBoost."""
    module = sys.modules.get("xgboost")
    return module is not None and isinstance(value, module.Booster)


def booster_bytes(booster: Any) -> bytes:
    """A model of XGBoost in its own JSON format."""
    return bytes(booster.save_raw("json"))


def booster_of(content: bytes) -> Any:
    """A model of XGBoost from its JSON; ValueError if following its trees could leave their arrays."""
    xgboost = require("xgboost", extra="boost", purpose="this model")
    try:
        learner = json.loads(content)["learner"]
        n_features = int(learner["learner_model_param"]["num_feature"])
        for tree in learner["gradient_booster"]["model"]["trees"]:
            left, right, feature, kind = (
                np.asarray(tree[name], dtype=np.int64)
                for name in ("left_children", "right_children", "split_indices", "split_type")
            )
            _check_children(left, right, feature, n_features)
            # The right child of a leaf is the place of its vector, in versions that keep those in a table of their own.
            places = len(tree.get("leaf_weights", ())) // max(1, int(tree["tree_param"]["size_leaf_vector"]))
            if kind.any() or right[left == -1].max(initial=-1) >= places or right.min(initial=0) < -1:
                raise ValueError("the tree has a leaf out of place")
        return xgboost.Booster(model_file=bytearray(content))
    except (KeyError, TypeError, RecursionError, xgboost.core.XGBoostError) as error:
        raise ValueError("it is not a model of XGBoost") from error


def _check_children(
    left: NDArray[np.int64], right: NDArray[np.int64], feature: NDArray[np.int64], n_features: int
) -> None:
    if left.ndim != 1 or not len(left) == len(right) == len(feature):
        raise ValueError("the arrays of the tree differ in length")
    inner = np.flatnonzero(left != -1)
    for side in (left[inner], right[inner]):
        # Children come after their parent, so that every path ends.
        if ((side <= inner) | (side >= len(left))).any():
            raise ValueError("the tree has a child out of place")
    if ((feature[inner] < 0) | (feature[inner] >= n_features)).any():
        raise ValueError("the tree splits by a feature that is not there")
