"""
Comparing methods
=================

Several methods on three data sets, judged by held-out pairs. No method is best everywhere, so compare them on your own
table, with PCA as the control.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import RCA, SSDR, WBDR, Constraints, KernelWBDR, LinearPairLens, SODRPaC
from pairlens.selection import compare

methods = {
    "PCA": PCA(2),
    "SSDR": SSDR(2),
    "RCA": RCA(2),
    "WBDR": WBDR(2),
    "KernelWBDR": KernelWBDR(2),
    "SODRPaC": SODRPaC(2),
    "LinearPairLens": LinearPairLens(2, random_state=0),
}
models = {name: make_pipeline(StandardScaler(), method) for name, method in methods.items()}
loaders = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
numbers = (20, 100)

# %%
# From 20 answers the standard errors are too large to rank the methods; from 100 some differences remain.
figure, row = plt.subplots(1, 3, figsize=(12, 4), sharey=True, layout="constrained")
for axes, (title, loader) in zip(row, loaders.items()):
    X, y = loader(return_X_y=True)
    for shift, number in zip((-0.12, 0.12), numbers):
        pairs = Constraints.from_labels(y, n_pairs=number, random_state=0)
        found = [entry.score for entry in compare(models, X, constraints=pairs)]
        places = np.arange(len(found)) + shift
        means, errors = [score.mean for score in found], [score.standard_error for score in found]
        axes.errorbar(means, places, xerr=errors, fmt="o", capsize=3, label=f"{number} answers")
    axes.set(title=title, xlabel="AUC of held-out pairs", yticks=range(len(models)), yticklabels=list(models))
    axes.grid(axis="x", alpha=0.3)
row[0].invert_yaxis()
row[0].legend(frameon=False, loc="lower left")
plt.show()
