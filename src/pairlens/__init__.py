"""pairlens: a low-dimensional view of data from the little people know about it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pairlens._version import __version__

if TYPE_CHECKING:
    from pairlens.cluster.pairclusters import PairClusters
    from pairlens.cluster.skkmeans import SKKMeans
    from pairlens.drawing import plot
    from pairlens.engines import config_context
    from pairlens.graphs.transformation import transform_constraints
    from pairlens.io.export import export
    from pairlens.io.models import load, save
    from pairlens.methods.bwdr import BWDR, WBDR
    from pairlens.methods.discriminants import CFLD, CMM, DCA, LFDA, NPSSDR, RCA, SDA, SSDR
    from pairlens.methods.dsp import DSP
    from pairlens.methods.kernel import KernelBWDR, KernelLPPSI, KernelNullSpace, KernelWBDR
    from pairlens.methods.lenses import LinearPairLens, PairLens
    from pairlens.methods.locality import CLPP, LPP, LPPSI, SLPP
    from pairlens.methods.pairmap.estimator import PairMap
    from pairlens.methods.sodrpac import SODRPaC
    from pairlens.pipeline import view_pipeline
    from pairlens.preference.comparing import LSML, SCML
    from pairlens.preference.gbwsdr import GBWSDR
    from pairlens.preference.lmca import LMCA, LMNN
    from pairlens.preference.metric import ITML, MLKR
    from pairlens.preference.ranksvm import RankSVM
    from pairlens.preference.wsdr import WSDR
    from pairlens.studio.notebook import widget
    from pairlens.supervision import Constraints, Preferences, Quadruplets, Triplets, read_answers
    from pairlens.tables import TableEncoder

# Names are imported when they are first used, so that `import pairlens` costs next to nothing.
_HOMES = {
    name: home
    for home, names in {
        "cluster.pairclusters": "PairClusters",
        "cluster.skkmeans": "SKKMeans",
        "drawing": "plot",
        "engines": "config_context",
        "graphs.transformation": "transform_constraints",
        "io.export": "export",
        "io.models": "load save",
        "methods.bwdr": "BWDR WBDR",
        "methods.discriminants": "CFLD CMM DCA LFDA NPSSDR RCA SDA SSDR",
        "methods.dsp": "DSP",
        "methods.kernel": "KernelBWDR KernelLPPSI KernelNullSpace KernelWBDR",
        "methods.lenses": "LinearPairLens PairLens",
        "methods.locality": "CLPP LPP LPPSI SLPP",
        "methods.pairmap.estimator": "PairMap",
        "methods.sodrpac": "SODRPaC",
        "pipeline": "view_pipeline",
        "preference.comparing": "LSML SCML",
        "preference.gbwsdr": "GBWSDR",
        "preference.lmca": "LMCA LMNN",
        "preference.metric": "ITML MLKR",
        "preference.ranksvm": "RankSVM",
        "preference.wsdr": "WSDR",
        "studio.notebook": "widget",
        "supervision": "Constraints Preferences Quadruplets Triplets read_answers",
        "tables": "TableEncoder",
    }.items()
    for name in names.split()
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
    "export",
    "load",
    "plot",
    "read_answers",
    "save",
    "transform_constraints",
    "view_pipeline",
    "widget",
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
