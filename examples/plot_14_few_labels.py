"""
Labels for some rows
====================

Three labels per class and 1,000 unlabelled digits. Linear discriminant analysis can only use the 30 labelled rows;
PairLens and SDA use the others too. All are judged on rows that they have not seen.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

from pairlens import SDA, PairLens

warnings.simplefilter("ignore")  # constant pixels
X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=500, train_size=1000, random_state=0)
partial = np.full(len(y), -1)
for label in range(10):
    rows = np.flatnonzero(y == label)[:3]
    partial[rows] = label
known = partial >= 0

# %%
views = {}
lda = LinearDiscriminantAnalysis(n_components=2).fit(X[known], y[known])
views["LDA, 30 rows"] = lda.transform(X), lda.transform(X_new)
for model in (SDA(2), PairLens(2, random_state=0)):
    model.fit(X, partial)
    views[f"{type(model).__name__}, 30 labels and all rows"] = model.transform(X), model.transform(X_new)

figure, row = plt.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
for axes, (title, (Z, Z_new)) in zip(row, views.items()):
    accuracy = KNeighborsClassifier(1).fit(Z[known], y[known]).score(Z_new, y_new)
    axes.scatter(*Z_new.T, c=y_new, cmap="tab10", s=10)
    axes.set(title=f"{title}\n1-NN of new rows: {accuracy:.2f}", xticks=[], yticks=[])
plt.show()
