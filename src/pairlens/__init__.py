"""pairlens: a low-dimensional view of data from the little people know about it."""

from pairlens._version import __version__
from pairlens.graphs.transformation import transform_constraints
from pairlens.methods.bwdr import BWDR, WBDR
from pairlens.methods.chunklets import CFLD, RCA
from pairlens.methods.clpp import CLPP
from pairlens.methods.cmm import CMM
from pairlens.methods.dca import DCA
from pairlens.methods.kernel_bwdr import KernelBWDR, KernelWBDR
from pairlens.methods.lfda import LFDA
from pairlens.methods.lpp import LPP, SLPP
from pairlens.methods.lppsi import LPPSI, KernelLPPSI
from pairlens.methods.npssdr import NPSSDR
from pairlens.methods.pairlens import LinearPairLens, PairLens
from pairlens.methods.sda import SDA
from pairlens.methods.sodrpac import SODRPaC
from pairlens.methods.ssdr import SSDR
from pairlens.supervision import Constraints, Preferences

__all__ = [
    "BWDR",
    "CFLD",
    "CLPP",
    "CMM",
    "DCA",
    "LFDA",
    "LPP",
    "LPPSI",
    "NPSSDR",
    "RCA",
    "SDA",
    "SLPP",
    "SODRPaC",
    "SSDR",
    "WBDR",
    "Constraints",
    "KernelBWDR",
    "KernelLPPSI",
    "KernelWBDR",
    "LinearPairLens",
    "PairLens",
    "Preferences",
    "__version__",
    "transform_constraints",
]
