"""
A pipeline with grid search
===========================

scikit-learn's pipelines and searches select the pairs among the rows of each fold. Here a search chooses the
number of directions and the shrinkage of WBDR by the AUC of held-out pairs. No label is needed.
"""

import matplotlib.pyplot as plt
import sklearn
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from pairlens import WBDR, Constraints

X, y = load_breast_cancer(return_X_y=True)
pairs = Constraints.from_labels(y, n_pairs=1500, random_state=0)

# %%
# Metadata routing hands the pairs to the step that asks for them, for fitting and for scoring. Scoring a pipeline
# this way needs scikit-learn 1.8.
directions, shrinkages = [1, 2, 4, 8], [0.0, 0.1, 0.3, 0.6, 0.9]
with sklearn.config_context(enable_metadata_routing=True):
    view = WBDR().set_fit_request(constraints=True).set_score_request(constraints=True)
    model = Pipeline([("scale", StandardScaler()), ("view", view)])
    grid = {"view__n_components": directions, "view__shrinkage": shrinkages}
    folds = KFold(4, shuffle=True, random_state=0)
    search = GridSearchCV(model, grid, cv=folds).fit(X, constraints=pairs)
print(search.best_params_, round(search.best_score_, 3))

# %%
# Each cell is the mean AUC over the folds; the frame marks the best.
table = search.cv_results_["mean_test_score"].reshape(len(directions), len(shrinkages))
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
picture = axes.imshow(table, cmap="viridis", aspect="auto")
for row in range(len(directions)):
    for column in range(len(shrinkages)):
        axes.text(column, row, f"{table[row, column]:.3f}", ha="center", va="center", color="white")
best = divmod(search.best_index_, len(shrinkages))
axes.add_patch(plt.Rectangle((best[1] - 0.5, best[0] - 0.5), 1, 1, fill=False, edgecolor="#d9662b", linewidth=3))
axes.set_xticks(range(len(shrinkages)), shrinkages)
axes.set_yticks(range(len(directions)), directions)
axes.set(xlabel="shrinkage", ylabel="directions", title="AUC of held-out pairs")
figure.colorbar(picture)
plt.show()
