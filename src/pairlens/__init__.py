"""pairlens: a low-dimensional view of data from the little people know about it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pairlens._version import __version__

if TYPE_CHECKING:
    from pairlens.cluster.pairclusters import PairClusters
    from pairlens.cluster.skkmeans import SKKMeans
    from pairlens.engines import config_context
    from pairlens.graphs.transformation import transform_constraints
    from pairlens.io.models import load, save
    from pairlens.methods.bwdr import BWDR, WBDR
    from pairlens.methods.chunklets import CFLD, RCA
    from pairlens.methods.clpp import CLPP
    from pairlens.methods.cmm import CMM
    from pairlens.methods.dca import DCA
    from pairlens.methods.dsp import DSP
    from pairlens.methods.kernel_bwdr import KernelBWDR, KernelWBDR
    from pairlens.methods.kernel_null_space import KernelNullSpace
    from pairlens.methods.lfda import LFDA
    from pairlens.methods.linear_pairlens import LinearPairLens
    from pairlens.methods.lpp import LPP, SLPP
    from pairlens.methods.lppsi import LPPSI, KernelLPPSI
    from pairlens.methods.npssdr import NPSSDR
    from pairlens.methods.pairlens import PairLens
    from pairlens.methods.pairmap.estimator import PairMap
    from pairlens.methods.sda import SDA
    from pairlens.methods.sodrpac import SODRPaC
    from pairlens.methods.ssdr import SSDR
    from pairlens.preference.gbwsdr import GBWSDR
    from pairlens.preference.itml import ITML
    from pairlens.preference.lmca import LMCA
    from pairlens.preference.lmnn import LMNN
    from pairlens.preference.lsml import LSML
    from pairlens.preference.mlkr import MLKR
    from pairlens.preference.ranksvm import RankSVM
    from pairlens.preference.scml import SCML
    from pairlens.preference.wsdr import WSDR
    from pairlens.supervision import Constraints, Preferences, Quadruplets, Triplets, read_answers
    from pairlens.tables import TableEncoder

# Names are imported when they are first used, so that `import pairlens` costs next to nothing.
_HOMES = {
    "BWDR": "methods.bwdr",
    "CFLD": "methods.chunklets",
    "CLPP": "methods.clpp",
    "CMM": "methods.cmm",
    "Constraints": "supervision",
    "DCA": "methods.dca",
    "DSP": "methods.dsp",
    "GBWSDR": "preference.gbwsdr",
    "KernelBWDR": "methods.kernel_bwdr",
    "KernelLPPSI": "methods.lppsi",
    "KernelNullSpace": "methods.kernel_null_space",
    "KernelWBDR": "methods.kernel_bwdr",
    "LFDA": "methods.lfda",
    "ITML": "preference.itml",
    "LMCA": "preference.lmca",
    "LMNN": "preference.lmnn",
    "LSML": "preference.lsml",
    "MLKR": "preference.mlkr",
    "SCML": "preference.scml",
    "LPP": "methods.lpp",
    "LPPSI": "methods.lppsi",
    "LinearPairLens": "methods.linear_pairlens",
    "NPSSDR": "methods.npssdr",
    "PairClusters": "cluster.pairclusters",
    "PairLens": "methods.pairlens",
    "PairMap": "methods.pairmap.estimator",
    "Preferences": "supervision",
    "Quadruplets": "supervision",
    "RCA": "methods.chunklets",
    "RankSVM": "preference.ranksvm",
    "SDA": "methods.sda",
    "SKKMeans": "cluster.skkmeans",
    "SLPP": "methods.lpp",
    "SODRPaC": "methods.sodrpac",
    "SSDR": "methods.ssdr",
    "TableEncoder": "tables",
    "Triplets": "supervision",
    "WBDR": "methods.bwdr",
    "WSDR": "preference.wsdr",
    "config_context": "engines",
    "load": "io.models",
    "read_answers": "supervision",
    "save": "io.models",
    "transform_constraints": "graphs.transformation",
}

__all__ = [
    "BWDR",
    "CFLD",
    "CLPP",
    "CMM",
    "DCA",
    "DSP",
    "GBWSDR",
    "ITML",
    "LFDA",
    "LMCA",
    "LMNN",
    "LPP",
    "LPPSI",
    "LSML",
    "MLKR",
    "NPSSDR",
    "RCA",
    "SCML",
    "SDA",
    "SLPP",
    "SSDR",
    "WBDR",
    "WSDR",
    "Constraints",
    "KernelBWDR",
    "KernelLPPSI",
    "KernelNullSpace",
    "KernelWBDR",
    "LinearPairLens",
    "PairClusters",
    "PairLens",
    "PairMap",
    "Preferences",
    "Quadruplets",
    "RankSVM",
    "SKKMeans",
    "SODRPaC",
    "TableEncoder",
    "Triplets",
    "__version__",
    "config_context",
    "load",
    "read_answers",
    "save",
    "transform_constraints",
]


_MODULES = (
    "anndata",
    "asking",
    "datasets",
    "exceptions",
    "io",
    "judging",
    "metrics",
    "report",
    "selection",
    "studio",
    "supervision",
    "tables",
)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(f"pairlens.{_HOMES[name]}"), name)
        return value
    if name in _MODULES:
        return import_module(f"pairlens.{name}")
    raise AttributeError(f"module 'pairlens' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
