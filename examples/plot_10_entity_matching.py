"""
Entity matching
===============

Do two records describe the same thing? Records are noisy copies of 60 entities, and half of the columns are noise.
Learn a distance from 80 answered pairs, then turn it into a probability with a logistic regression on held-out
answers. A probability is calibrated when, of the pairs with probability p, a share p are matches.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from pairlens import RCA, Constraints
from pairlens.judging import pair_auc

rng = np.random.default_rng(0)
entity = np.repeat(np.arange(60), 5)
X = np.hstack([rng.standard_normal((60, 10))[entity], np.zeros((300, 10))])
X += rng.standard_normal((300, 20)) * np.r_[np.full(10, 0.4), np.full(10, 3.0)]

every = Constraints.from_labels(entity)


def some(pairs, start, stop):
    """As many cannot-links as must-links: people are asked about pairs that might match."""
    order = np.random.default_rng(1)
    must, cannot = order.permutation(pairs.must_link), order.permutation(pairs.cannot_link)
    return Constraints(must[start:stop], cannot[start:stop], n_samples=len(X))


train, calibrate, test = some(every, 0, 40), some(every, 40, 100), some(every, 100, 500)
model = RCA(10).fit(X, constraints=train)
spaces = {"all columns": X, "RCA, 80 answers": model.transform(X)}


def distances(Z, pairs):
    both = np.vstack([pairs.must_link, pairs.cannot_link])
    return np.linalg.norm(Z[both[:, 0]] - Z[both[:, 1]], axis=1)[:, None], np.arange(len(both)) < pairs.n_must_link


# %%
# Distances of 800 new pairs in both spaces, the probability that two records match, and whether it is calibrated.
figure, row = plt.subplots(1, 3, figsize=(15, 4), layout="constrained")
row[2].plot([0, 1], [0, 1], "k:", label="calibrated")
for axes, (title, Z) in zip(row, spaces.items()):
    (length, match), logistic = distances(Z, test), LogisticRegression().fit(*distances(Z, calibrate))
    bins = np.linspace(0, length.max(), 40)
    axes.hist([length[match, 0], length[~match, 0]], bins, label=["match", "no match"], color=["#2f6db5", "#d9662b"])
    probability = axes.twinx()
    probability.plot(bins, logistic.predict_proba(bins[:, None])[:, 1], color="0.2")
    probability.set(ylim=(0, 1.05), ylabel="probability of a match")
    axes.set(title=f"{title} (AUC {pair_auc(Z, test):.2f})", xlabel="distance", ylabel="pairs")
    axes.legend(frameon=False, loc="upper right", bbox_to_anchor=(1, 0.9))
    predicted = logistic.predict_proba(length)[:, 1]
    parts = np.array_split(np.argsort(predicted), 8)
    row[2].plot([predicted[part].mean() for part in parts], [match[part].mean() for part in parts], "o-", label=title)
row[2].set(xlabel="predicted probability", ylabel="share of matches", title="New pairs in eight groups")
row[2].legend(frameon=False)
plt.show()
