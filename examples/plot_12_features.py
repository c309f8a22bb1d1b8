"""
What a direction means
======================

A linear view can be interpreted: ``components_`` has the weight of each feature. Here 40 answers about tumours give one
direction. The plots show its ten largest weights and the rows along it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from pairlens import Constraints, LinearPairLens

cancer = load_breast_cancer()
X = StandardScaler().fit_transform(cancer.data)
pairs = Constraints.from_labels(cancer.target, n_pairs=40, random_state=0)
model = LinearPairLens(1, random_state=0).fit(X, constraints=pairs)

# %%
weights = model.components_[0]
weights = weights * np.sign(weights.sum())
z = X @ weights
heaviest = np.argsort(-np.abs(weights))[:10][::-1]
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
left.barh(cancer.feature_names[heaviest], weights[heaviest], color="#2f6db5")
left.set(title="Weights of the ten heaviest features")
bins = np.linspace(z.min(), z.max(), 50)
for label, colour in ((0, "#d9662b"), (1, "#2f6db5")):
    right.hist(z[cancer.target == label], bins, alpha=0.7, color=colour, label=cancer.target_names[label])
right.set(xlabel="place along the direction", ylabel="tumours", title="569 tumours from 40 answers")
right.legend(frameon=False)
plt.show()
