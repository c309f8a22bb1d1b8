"""Trees of scikit-learn and XGBoost as data.

Both follow indices in compiled code, and trust what they load. So every part that they are given is checked by its name
and range, and parts with other names never reach them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pairlens._optional import require
from pairlens.io._json import bounded_json
from pairlens.preference.trees import SklearnTrees, XGBoostTrees

MAX_BOOSTER = 1 << 28
"""Bytes of the JSON of a model of XGBoost."""
MAX_TREE_DEPTH = 1000
"""Depth of a tree of XGBoost, which measures it by recursion."""
XGBOOST_VERSIONS = range(2, 100)
"""Major versions of XGBoost whose JSON is known."""


def is_tree(value: Any) -> bool:
    """Whether this is the compiled part of a tree of scikit-learn."""
    module = sys.modules.get("sklearn.tree._tree")
    return module is not None and isinstance(value, module.Tree)


def tree_parts(tree: Any) -> dict[str, Any]:
    """The arguments and the state of a tree."""
    _, (n_features, n_classes, n_outputs), state = tree.__reduce__()
    return {"n_features": int(n_features), "n_classes": n_classes, "n_outputs": int(n_outputs), **state}


def tree_of(parts: dict[str, Any]) -> Any:
    """A regression tree from its parts; ValueError if following it could leave its arrays."""
    from sklearn.tree._tree import NODE_DTYPE, Tree

    n_features, n_outputs, count = (_whole(parts[name]) for name in ("n_features", "n_outputs", "node_count"))
    nodes = np.asarray(parts["nodes"]).astype(NODE_DTYPE, casting="same_kind")
    values = np.asarray(parts["values"])
    n_classes = np.asarray(parts["n_classes"]).astype(np.intp, casting="same_kind")
    if n_features < 1 or nodes.shape != (count,) or values.shape != (count, n_outputs, 1):
        raise ValueError("the tree has odd sizes")
    if n_classes.shape != (n_outputs,) or (n_classes != 1).any():
        raise ValueError("the tree is not one of numbers")
    left, right = nodes["left_child"], nodes["right_child"]
    depth = _check_children(left, right, nodes["feature"], n_features)
    if (right[left == -1] != -1).any() or _whole(parts["max_depth"]) != depth:
        raise ValueError("the tree has a leaf out of place")
    tree = Tree(n_features, n_classes, n_outputs)
    tree.__setstate__({"max_depth": depth, "node_count": count, "nodes": nodes, "values": values})
    return tree


def is_booster(value: Any) -> bool:
    """Whether this is a model of XGBoost."""
    module = sys.modules.get("xgboost")
    return module is not None and isinstance(value, module.Booster)


def booster_bytes(booster: Any) -> bytes:
    """A model of XGBoost in its own JSON format, without the parts that a model file does not hold."""
    return _checked_booster(bytes(booster.save_raw("json")))


def booster_of(content: bytes) -> Any:
    """A model of XGBoost from its JSON; ValueError if it is not a sum of trees as GBWSDR grows them."""
    xgboost = require("xgboost", extra="boost", purpose="this model")
    try:
        return xgboost.Booster(model_file=bytearray(_checked_booster(content)))
    except xgboost.core.XGBoostError as error:
        raise ValueError("it is not a model of XGBoost") from error


def _checked_booster(content: bytes) -> bytes:
    """The JSON of a model of XGBoost, made anew of the parts that are known and in range."""
    model = bounded_json(content, MAX_BOOSTER)
    learner = model["learner"]
    booster, sizes = learner["gradient_booster"], learner["learner_model_param"]
    trees = booster["model"]["trees"]
    n_features, n_outputs = _counted(sizes["num_feature"]), _counted(sizes["num_target"])
    fixed = {
        "booster": (booster["name"], "gbtree"),
        "objective": (learner["objective"]["name"], "reg:squarederror"),
        "num_class": (sizes["num_class"], "0"),
        "num_parallel_tree": (booster["model"]["gbtree_model_param"]["num_parallel_tree"], "1"),
        "tree_info": (booster["model"]["tree_info"], [0] * len(trees)),
        "iteration_indptr": (booster["model"]["iteration_indptr"], list(range(len(trees) + 1))),
        # Without names, types and categories of features: rows are plain numbers.
        "feature_names": (learner["feature_names"], []),
        "feature_types": (learner["feature_types"], []),
    }
    for name, (found, expected) in fixed.items():
        if found != expected:
            raise ValueError(f"the {name} of XGBoost is {str(found)[:40]}, where GBWSDR has {str(expected)[:40]}")
    version = [_whole(part) for part in model["version"]]
    # One zero, or one for each output, by the version.
    zeros = re.fullmatch(r"\[?0E0((?:,0E0)*)\]?", sizes["base_score"])
    if len(version) != 3 or version[0] not in XGBOOST_VERSIONS or max(version) >= 1000 or min(version) < 0:
        raise ValueError(f"version {version[:4]} of XGBoost is not known")
    if zeros is None or len(zeros[1]) // 4 + 1 not in (1, n_outputs):
        raise ValueError("the trees of XGBoost do not start from zero")
    grown = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
        "iteration_indptr": list(range(len(trees) + 1)),
        "tree_info": [0] * len(trees),
        "trees": [_checked_tree(tree, place, n_features, n_outputs) for place, tree in enumerate(trees)],
    }
    if "cats" in booster["model"]:
        grown["cats"] = {"enc": [], "feature_segments": [], "sorted_idx": []}
    checked = {
        "learner": {
            "attributes": {},
            "feature_names": [],
            "feature_types": [],
            "gradient_booster": {"model": grown, "name": "gbtree"},
            "learner_model_param": {
                "base_score": sizes["base_score"],
                "boost_from_average": "0",
                "num_class": "0",
                "num_feature": str(n_features),
                "num_target": str(n_outputs),
            },
            "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        },
        "version": version,
    }
    return json.dumps(checked, allow_nan=False, separators=(",", ":")).encode()


def _checked_tree(tree: Any, place: int, n_features: int, n_outputs: int) -> dict[str, Any]:
    """The known parts of a tree of XGBoost; ValueError if one is out of range."""
    whole = ("left_children", "right_children", "parents", "split_indices", "split_type", "default_left")
    left, right, parents, feature, kind, default = (_whole_numbers(tree[name]) for name in whole)
    count, sizes = len(left), tree["tree_param"]
    if _check_children(left, right, feature, n_features) > MAX_TREE_DEPTH:
        raise ValueError(f"a tree of XGBoost is deeper than {MAX_TREE_DEPTH}")
    if ((feature < 0) | (feature >= n_features)).any():
        raise ValueError("the tree splits by a feature that is not there")
    inner = np.flatnonzero(left != -1)
    if len(parents) != count or (parents[left[inner]] != inner).any() or (parents[right[inner]] != inner).any():
        raise ValueError("a tree of XGBoost has a parent out of place")
    if len(kind) != count or kind.any() or any(len(tree[name]) for name in tree if name.startswith("categories")):
        raise ValueError("a tree of XGBoost splits by categories")
    if len(default) != count or not np.isin(default, (0, 1)).all() or parents[0] not in (-1, 2**31 - 1):
        raise ValueError("a tree of XGBoost has a node out of range")
    expected: dict[str, tuple[int, ...]] = {
        "num_deleted": (0,),
        "num_feature": (n_features,),
        "num_nodes": (count,),
        # Early versions write 0 for a single number.
        "size_leaf_vector": (n_outputs,) if n_outputs > 1 else (0, 1),
    }
    for name, allowed in expected.items():
        if _counted(sizes[name], least=0) not in allowed:
            raise ValueError(f"{name} of a tree of XGBoost is {str(sizes[name])[:40]}, not {allowed[-1]}")
    numbers = {name: _numbers(tree[name], count) for name in ("loss_changes", "split_conditions", "sum_hessian")}
    numbers["base_weights"] = _numbers(tree["base_weights"], count * n_outputs)
    leaves = right[left == -1]
    if "leaf_weights" in tree:
        # The vectors of the leaves in a table of their own; the right child of a leaf is its place there.
        numbers["leaf_weights"] = _numbers(tree["leaf_weights"], len(leaves) * n_outputs)
        if not np.array_equal(np.sort(leaves), np.arange(len(leaves))):
            raise ValueError("a tree of XGBoost has a leaf out of place")
    elif (leaves != -1).any():
        raise ValueError("a tree of XGBoost has a leaf out of place")
    return {
        **{name: tree[name] for name in whole},
        **numbers,
        **{name: [] for name in ("categories", "categories_nodes", "categories_segments", "categories_sizes")},
        "id": place,
        "tree_param": {name: str(int(sizes[name])) for name in expected},
    }


def _whole(value: Any) -> int:
    """A whole number of JSON."""
    if type(value) is not int:
        raise TypeError(f"{str(value)[:40]!r} is not a whole number")
    return value


def _counted(value: Any, least: int = 1) -> int:
    """A number of things, which XGBoost writes as text."""
    if not isinstance(value, str) or re.fullmatch(r"[0-9]{1,9}", value) is None or int(value) < least:
        raise ValueError(f"{str(value)[:40]!r} is not a number of things")
    return int(value)


def _whole_numbers(values: Any) -> NDArray[np.int64]:
    """Whole numbers of JSON; 0 and 1 may be written as false and true."""
    if not isinstance(values, list) or not all(type(value) in (int, bool) for value in values):
        raise TypeError("a tree has something else than whole numbers")
    return np.array(values, dtype=np.int64)


def _numbers(values: Any, count: int) -> list[float]:
    """So many finite numbers of JSON, as they are."""
    if not isinstance(values, list) or len(values) != count:
        raise ValueError("the arrays of a tree differ in length")
    if not all(type(value) in (int, float) and abs(value) < 1e39 for value in values):
        raise ValueError("a tree has something else than finite numbers")
    return values


def _check_children(
    left: NDArray[np.int64], right: NDArray[np.int64], feature: NDArray[np.int64], n_features: int
) -> int:
    """Return the depth of a tree; ValueError if following it could leave its arrays, or never end."""
    if left.ndim != 1 or not 1 <= len(left) == len(right) == len(feature):
        raise ValueError("the arrays of the tree differ in length")
    inner = np.flatnonzero(left != -1)
    for side in (left[inner], right[inner]):
        # Children come after their parent, so that every path ends.
        if ((side <= inner) | (side >= len(left))).any():
            raise ValueError("the tree has a child out of place")
    if not np.array_equal(np.sort(np.concatenate([left[inner], right[inner]])), np.arange(1, len(left))):
        raise ValueError("the tree has a child out of place")
    if ((feature[inner] < 0) | (feature[inner] >= n_features)).any():
        raise ValueError("the tree splits by a feature that is not there")
    depth = np.zeros(len(left), dtype=np.int64)
    for node in inner:
        depth[[left[node], right[node]]] = depth[node] + 1
    return int(depth.max())


def _check_regressor(model: Any) -> None:
    if not is_tree(model.tree_) or model.tree_.n_features != model.n_features_in_:
        raise ValueError("the tree does not fit the number of features")
    if model.tree_.n_outputs != model.n_outputs_:
        raise ValueError("the tree does not fit the number of outputs")


def _check_sklearn_trees(trees: Any) -> None:
    if any(
        type(tree).__name__ != "DecisionTreeRegressor" or tree.n_outputs_ != trees.n_outputs for tree in trees.trees
    ):
        raise ValueError("the trees differ in what they give")


def _check_xgboost_trees(trees: Any) -> None:
    if trees._rows is not None or not is_booster(trees._booster) or _whole(trees.n_outputs) < 1:
        raise ValueError("it is not a sum of trees of XGBoost")
    if trees._booster.num_boosted_rounds() != _whole(trees._count):
        raise ValueError("it is a sum of another number of trees of XGBoost")


def _check_boosted_view(model: Any) -> None:
    """ValueError if a fitted GBWSDR would hand its trees rows of another width, or expects other sums of them."""
    trees = vars(model).get("_trees")
    if trees is None:
        return
    if isinstance(trees, SklearnTrees):
        widths = {tree.n_features_in_ for tree in trees.trees}
    elif isinstance(trees, XGBoostTrees):
        widths = {trees._booster.num_features()}
    else:
        raise TypeError("_trees is something else")
    if not widths <= {model.n_features_in_} or model.components_.shape != (trees.n_outputs, model.n_features_in_):
        raise ValueError("the trees do not fit the linear view")


CHECKS: dict[str, Callable[[Any], None]] = {
    "pairlens.GBWSDR": _check_boosted_view,
    "sklearn.tree.DecisionTreeRegressor": _check_regressor,
    "trees-of-sklearn": _check_sklearn_trees,
    "trees-of-xgboost": _check_xgboost_trees,
}
"""By tag, what raises an error if the parts of an object with trees do not fit each other."""
