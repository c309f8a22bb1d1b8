"""
How many answers are enough?
============================

The AUC with which distance separates pairs of *new* rows, against the number of answers, on the wine data. The bars
are the standard deviation over five draws of the answers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from pairlens import SSDR, WBDR, Constraints, LinearPairLens
from pairlens.judging import pair_auc

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(StandardScaler().fit_transform(X), y, random_state=0, test_size=0.5)
new_pairs = Constraints.from_labels(y_test)

numbers = (10, 20, 40, 80, 160)
methods = {"SSDR": SSDR(2), "WBDR": WBDR(2), "LinearPairLens": LinearPairLens(2, random_state=0)}
scores = {name: np.zeros((5, len(numbers))) for name in methods}
for draw in range(5):
    for column, number in enumerate(numbers):
        pairs = Constraints.from_labels(y_train, n_pairs=number, random_state=draw)
        for name, model in methods.items():
            Z = model.fit(X_train, constraints=pairs).transform(X_test)
            scores[name][draw, column] = pair_auc(Z, new_pairs)

# %%
# PCA needs no answers: a method that stays below the dotted line has not earned its answers.
figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
for name, values in scores.items():
    axes.errorbar(numbers, values.mean(axis=0), yerr=values.std(axis=0), marker="o", capsize=3, label=name)
control = pair_auc(PCA(2).fit(X_train).transform(X_test), new_pairs)
axes.axhline(control, color="0.4", linestyle=":", label="PCA, no answers")
axes.set(xscale="log", xticks=numbers, xticklabels=numbers, xlabel="answers", ylabel="AUC of pairs of new rows")
axes.minorticks_off()
axes.legend(frameon=False)
plt.show()
