"""
Which method when
=================

Follow the tree from what people know to a method. Under each leaf is a mean over data sets of scikit-learn (two for
comparisons, otherwise three) and two draws of the answers, on unseen rows. PCA uses no answers. Chance is 0.5.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from pairlens import SDA, WSDR, Constraints, KernelWBDR, PairLens, Preferences, RankSVM
from pairlens.judging import pair_auc
from pairlens.metrics import pairwise_accuracy

warnings.simplefilter("ignore")  # wrong answers contradict each other, and some columns are constant


def quality(model, known, amount, seed, table):
    X, X_new, y, y_new = train_test_split(*table, test_size=0.4, random_state=seed)
    if known == "comparisons":
        model.fit(X, preferences=Preferences.from_scores(y, n_pairs=amount, random_state=seed))
        return pairwise_accuracy(model.decision_function(X_new), Preferences.from_scores(y_new))
    pairs = Constraints.from_labels(y, n_pairs=amount, random_state=seed).flip(0.2 * ("wrong" in known), random_state=0)
    told = {"y": np.where(np.arange(len(y)) < amount, y, -1)} if known == "labels" else {"constraints": pairs}
    model.fit(X, **({} if isinstance(model, PCA) else told))
    return pair_auc(model.transform(X_new), Constraints.from_labels(y_new))


# %%
sources = (load_breast_cancer, load_wine, load_digits, load_diabetes)
tables = [[scale(X)[::k], y[::k]] for X, y in (f(return_X_y=True) for f in sources) for k in [1 + len(y) // 400]]
lens, kernel = PairLens(4, random_state=0), KernelWBDR(4)
start, pairs = ("What do people know?", (0.55, 0.95)), ("Which rows belong together.\nAll answers right?", (0.27, 0.8))
leaves = [
    (pairs, "No, or they are few:\nPairLens", "pairs, a fifth wrong", (20, 100, 500), (lens, kernel, PCA(4))),
    (pairs, "Yes, and there are thousands:\nKernelWBDR", "pairs", (50, 300, 2000), (lens, kernel, PCA(4))),
    (start, "Labels of some rows:\nPairLens", "labels", (20, 50, 120), (lens, SDA(3), PCA(4))),
    (start, "Which row is better:\nRankSVM, for a view WSDR", "comparisons", (20, 100, 500), (WSDR(2), RankSVM())),
]
style = {"ha": "center", "va": "center", "bbox": {"boxstyle": "round", "fc": "w"}, "arrowprops": {"arrowstyle": "-"}}
figure, charts = plt.subplots(1, 4, figsize=(14, 7), sharey=True, gridspec_kw={"left": 0.04, "right": 0.99, "top": 0.5})
charts[0].annotate(start[0], pairs[1], start[1], "figure fraction", "figure fraction", **style)
for axes, (parent, advice, known, amounts, models) in zip(charts, leaves):
    runs = [(seed, table) for seed in (0, 1) for table in (tables[2:] if known == "comparisons" else tables[:3])]
    for model in models:
        curve = [np.mean([quality(model, known, amount, *run) for run in runs]) for amount in amounts]
        axes.semilogx(amounts, curve, "k:" if isinstance(model, PCA) else "o-", label=type(model).__name__)
    axes.set(xlabel=known, ylim=(0.5, 1), xticks=amounts, xticklabels=amounts)
    axes.set_xticks([], minor=True)
    axes.annotate(parent[0], (0.5, 1.3), parent[1], "axes fraction", "figure fraction", **style)
    axes.set_title(advice, weight="bold", pad=14)
    axes.legend(frameon=False, loc="upper left")
plt.show()
