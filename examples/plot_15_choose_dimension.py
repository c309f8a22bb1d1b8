"""
How many directions?
====================

``n_components="auto"`` chooses the smallest number of directions whose AUC of held-out pairs is within one standard
error of the best. The curve shows the candidates.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from pairlens import Constraints, LinearPairLens
from pairlens.selection import held_out_auc

X, y = load_wine(return_X_y=True)
pairs = Constraints.from_labels(y, n_pairs=100, random_state=0)
chosen = LinearPairLens("auto", random_state=0).fit(X, constraints=pairs).n_components_

directions = range(1, 9)
scores = [held_out_auc(LinearPairLens(d, random_state=0), X, pairs) for d in directions]

# %%
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
axes.errorbar(directions, [s.mean for s in scores], yerr=[s.standard_error for s in scores], marker="o", capsize=4)
axes.axvline(chosen, color="#d9662b", linestyle="--", label=f'"auto" chooses {chosen}')
axes.set(xlabel="directions", ylabel="AUC of held-out pairs", title="Wine, 100 answers")
axes.legend(frameon=False)
plt.show()
