"""No model file ends the process, fills the memory or runs on: it works, or an error says what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from random import SystemRandom

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from pairlens import GBWSDR, WBDR, Constraints, KernelBWDR, PairMap, TableEncoder, save
from pairlens.selection.fitting import fit_model
from tests.io.every_model import MODELS, blobs, fitted

EXPLORE = bool(os.environ.get("PAIRLENS_EXPLORE"))
BATCHES, CASES = (8, 250) if EXPLORE else (1, 60)
FIRST = SystemRandom().randrange(2**40) if EXPLORE else 0
"""New cases each time that one explores."""
ROOT = Path(__file__).parents[2]


def write_corpus(folder: Path) -> None:
    """Models of all kinds of parts: trees of both libraries, sparse matrices, words, maps, and every method."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("xgboost")
    X, y = blobs()
    pairs = Constraints.from_labels(y, n_pairs=40, random_state=0)
    table = pandas.DataFrame(X, columns=list("abcd")).assign(colour=np.array(["red", "green", "blue"])[y])
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["a", "c"]), ("words", OneHotEncoder(sparse_output=False), ["colour"])]
    )
    models = {
        "one-output": (GBWSDR(1, backend="xgboost", n_estimators=2, max_depth=2, random_state=0), X),
        "columns": (make_pipeline(columns, WBDR(2)), table),
        "table": (make_pipeline(TableEncoder(), WBDR(2)), table),
        "sparse": (KernelBWDR(2), sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))),
        "map": (PairMap(random_state=0), X),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (model, rows) in models.items():
            known = (y,) if name == "one-output" else ()
            learned = model.fit(rows, *known) if known else fit_model(model, rows, pairs)
            save(learned, folder / f"{name}.pairlens")
    for name in MODELS:
        save(fitted(name), folder / f"{name}.pairlens")
    # These count more: they hold indices, which must not lead astray.
    for copy in range(4):
        for name in ("GBWSDR-xgboost", "GBWSDR-sklearn", "one-output", "sparse"):
            shutil.copy(folder / f"{name}.pairlens", folder / f"{name}-{copy}.pairlens")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder)
    return folder


@pytest.mark.hypothesis
@pytest.mark.processes
@pytest.mark.skipif(sys.platform != "linux", reason="needs limits of memory that hold")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_changed_files_do_no_harm(corpus, batch):
    """A number of the last line can be tried again by ``python -m tests.io.fuzz FOLDER NUMBER 1``."""
    first = FIRST + batch * CASES
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-m", "tests.io.fuzz", corpus, str(first), str(CASES)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        check=False,
    )
    last = corpus / f"{first}.last"
    place = last.read_text() if last.exists() else "the models as they are"
    assert done.returncode == 0, f"{place}: {done.returncode}\n{done.stderr[-3000:]}"
    found = json.loads(done.stdout)
    assert sum(found.values()) == CASES
    assert found["refused"] > CASES / 5
