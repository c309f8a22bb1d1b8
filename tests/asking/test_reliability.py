"""The error rate of a machine, from audits and repeats, and what its answers weigh."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pairlens import Constraints, LinearPairLens
from pairlens.asking import Asker, Entry, PreferenceAsker, Question, error_rates, is_machine
from pairlens.asking.reliability import FIXED, Record, error_rate, worth_of
from tests.asking.people import blobs, true_answer

X, Y = blobs(80, centers=3)
MACHINE = "machine:m"
OTHER = {"same": "different", "different": "same", "left": "right", "right": "left"}


def rate_of(audits=0, wrong=0, repeats=0, inconsistent=0, people=(0, 0)):
    """Return the rate and its interval of a machine with answers of one kind."""
    return error_rate((400, (audits, wrong, repeats, inconsistent)), people=people)


def machine_answers(asker, y, count, wrong, seed, flips=0.0):
    """Answer as a machine that is wrong about a share of the pairs for good, and flips others at random."""
    rng = np.random.default_rng(seed)
    fixed = rng.random((len(y), len(y))) < wrong
    n_wrong = 0
    for _ in range(count):
        question = asker.ask(MACHINE)
        true = said = true_answer(question, y)
        if fixed[min(question.rows), max(question.rows)] != (rng.random() < flips):
            said = OTHER[true]
        n_wrong += said != true
        asker.tell(question, said)
    return n_wrong / count


def audit_all(asker, y, who="ann"):
    n = 0
    while asker.audits_due():
        question = asker.ask(who)
        assert question.purpose == "overlap"
        asker.tell(question, true_answer(question, y))
        n += 1
    return n


def test_many_audits_give_their_share():
    rate, low, high = rate_of(2000, 400)
    # People err too, by some 2 %, which explains a part of the 20 % of disagreement.
    assert 0.13 < low < rate < high < 0.22
    assert rate == pytest.approx(0.185, abs=0.01)


def test_the_interval_is_that_of_the_beta_posterior_without_flips_and_errors_of_people():
    many = 10**6
    _, low, high = rate_of(40, 8, many, 0, (many, 0))
    expected = stats.beta(FIXED[0] + 8, FIXED[1] + 32).ppf([0.025, 0.975])
    assert [low, high] == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize("audits", [10, 40])
@pytest.mark.parametrize("wrong", [0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 1.0])
def test_the_interval_holds_for_machines_of_every_kind(audits, wrong):
    """Always right, seldom wrong, guessing, always wrong: how probable it is that the interval has the true share."""
    intervals = [rate_of(audits, k)[1:] for k in range(audits + 1)]
    held = [low <= wrong <= high for low, high in intervals]
    assert stats.binom.pmf(np.arange(audits + 1), audits, wrong) @ held > 0.85
    rates = [rate_of(audits, k)[0] for k in range(audits + 1)]
    assert all(low <= rate <= high for rate, (low, high) in zip(rates, intervals))
    assert rates == sorted(rates)


def test_many_audits_without_a_mistake_leave_no_error():
    """The narrowest cell of the grid is no lower bound."""
    rate, low, high = rate_of(5000, 0)
    assert low == 0
    assert rate < high < 0.002
    assert rate_of(5000, 5000)[1:] == pytest.approx((1, 1), abs=0.03)


def test_repeats_bound_the_error_from_below():
    assert rate_of(0, 0, 200, 100)[1] > 0.2
    assert rate_of(0, 0, 200, 0)[0] < rate_of(0, 0, 0, 0)[0]
    assert rate_of(20, 4, 100, 40)[1] > rate_of(20, 4, 100, 0)[1]


@pytest.mark.parametrize("says_same", [0.02, 0.2, 0.5])
@pytest.mark.parametrize("audits", [4, 8, 40])
@pytest.mark.parametrize("wrong", [(0.05, 0.05), (0.1, 0.65), (0.0, 0.2), (0.3, 0.05), (0.2, 0.0), (0.5, 0.5)])
def test_the_interval_holds_for_strata_of_every_size(says_same, audits, wrong):
    """Of 400 answers, three quarters of the audits among those that join rows, if there are as many."""
    n = np.array([400 - round(400 * says_same), round(400 * says_same)])
    n_audits = np.array([audits - min(n[1], audits * 3 // 4), min(n[1], audits * 3 // 4)])
    n_wrong = np.round(n * wrong).astype(int)
    chance, held = [], []
    counts = [np.arange(most + 1) for most in n_audits]
    p = [stats.hypergeom(n[at], n_wrong[at], n_audits[at]).pmf(counts[at]) for at in (0, 1)]
    for k, pk in zip(counts[0], p[0]):
        for m, pm in zip(counts[1], p[1]):
            if pk * pm > 1e-4:
                strata = [(int(n[0]), (int(n_audits[0]), int(k), 0, 0)), (int(n[1]), (int(n_audits[1]), int(m), 0, 0))]
                _, low, high = error_rate(*strata)
                chance.append(pk * pm)
                held.append(low <= n_wrong.sum() / 400 <= high)
    assert np.average(held, weights=chance) >= 0.9


def test_the_true_error_is_in_the_interval():
    """Ten runs of 400 answers of which a fifth is wrong, a tenth audited: in nine or more the interval holds."""
    inside = inside_of_run = 0
    for seed in range(10):
        asker = Asker(X, strategy="random", random_state=seed, refit_every=10**6, overlap=0.1)
        share = machine_answers(asker, Y, 400, 0.2, seed)
        assert 25 <= audit_all(asker, Y) <= 60
        found = asker.error_rates()[MACHINE]
        inside += found.low <= 0.2 <= found.high
        inside_of_run += found.low <= share <= found.high
    assert inside >= 9
    assert inside_of_run >= 9


def test_a_machine_that_goes_by_similarity_is_known_by_its_audits():
    """It calls too many pairs the same, and is wrong about the same rows each time."""
    rows, y = blobs(200, centers=8, seed=1)
    apart = ((rows[:, None] - rows) ** 2).sum(axis=2)
    said, truth = apart < np.quantile(apart[np.triu_indices(200, 1)], 0.3), y[:, None] == y
    assert truth[said].mean() < 0.5
    assert 0.75 < (said == truth).mean() < 0.85
    inside = left_out = 0
    for seed in range(10):
        asker = Asker(rows, strategy="random", random_state=seed, refit_every=10**6, overlap=0.1)
        wrong = 0
        for _ in range(400):
            question = asker.ask(MACHINE)
            wrong += int(said[question.rows] != truth[question.rows])
            asker.tell(question, "same" if said[question.rows] else "different")
        audit_all(asker, y)
        found = asker.error_rates()[MACHINE]
        inside += found.low <= wrong / 400 <= found.high
        left_out += asker.constraints().n_pairs == found.audits
        assert (asker.ignored_machines_ == [MACHINE]) == (asker.constraints().n_pairs == found.audits)
    assert inside >= 9
    # The learner sees the distances too, so the answers tell it nothing.
    assert left_out >= 6


def test_audits_are_a_random_sample_that_grows_with_the_share():
    asker = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.3)
    machine_answers(asker, Y, 200, 0.2, 0)
    due = asker.audits_due()
    assert 40 < len(due) < 80
    fewer = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.1)
    for entry in asker.log:
        fewer.tell(*entry)
    assert 8 < len(fewer.audits_due()) < 35
    assert {question.id for question in fewer.audits_due()} < {question.id for question in due}
    question = asker.ask("ann")
    assert (question.rows, question.annotator) == (due[0].rows, "ann")
    assert asker.ask("ben").rows == due[1].rows
    assert asker.ask(MACHINE).purpose != "overlap"
    replayed = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.3)
    for entry in asker.log:
        replayed.tell(*entry)
    assert replayed.audits_due() == due
    # The question tells nothing of what the machine said: it is the same after other answers.
    told = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.9)
    other = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.9)
    for _ in range(5):
        asked = told.ask(MACHINE)
        told.tell(asked, "same")
        other.tell(asked, "different")
    assert told.ask("ann") == other.ask("ann")
    assert told.ask("ann").purpose == "overlap"


def test_of_the_audits_most_are_answers_that_join_rows_and_a_part_of_them_is_a_sample_of_both():
    shares = []
    for seed in range(10):
        asker = Asker(X, strategy="random", random_state=seed, refit_every=10**6, overlap=0.1)
        machine_answers(asker, Y, 400, 0.1, seed)
        said = {question.id: answer for question, answer in asker.log}
        due = [said[question.id] == "same" for question in asker.audits_due()]
        assert 20 < len(due) < 65
        shares.append((np.mean(due), np.mean(due[:20])))
    assert np.mean(shares, axis=0) == pytest.approx([0.75, 0.75], abs=0.08)


@pytest.mark.parametrize("word", ["same", "different"])
def test_a_machine_that_says_one_word_is_audited_as_often(word):
    asker = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.1)
    for _ in range(400):
        asker.tell(asker.ask(MACHINE), word)
    assert 25 <= len(asker.audits_due()) <= 55
    found = asker.error_rates()[MACHINE]
    assert (found.audits, found.low) == (0, 0)
    assert found.high > 0.75
    first = asker.log[0]
    asker = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.9)
    asker.tell(*first)
    assert audit_all(asker, Y) <= 1
    assert asker.error_rates()[MACHINE].answers == 1


def test_of_a_few_answers_that_join_rows_all_may_be_audited_and_of_others_more():
    asker = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.2)
    for at in range(400):
        asker.tell(asker.ask(MACHINE), "same" if at < 8 else "different")
    due = [question.id for question in asker.audits_due()]
    assert {entry.question.id for entry in asker.log[:8]} < set(due)
    assert 55 < len(due) < 105


def machine_record(said, truth, closeness, n_audits):
    """Return what is known of a machine that answered these pairs, the first of which were audited."""
    record = Record()
    for k, (same, near) in enumerate(zip(said, closeness)):
        question = Question(f"m-{k}", "same", (2 * k, 2 * k + 1), "pair", (), MACHINE)
        record.take(Entry(question, "same" if same else "different"), [near])
    for k in range(n_audits):
        question = Question(f"a-{k}", "same", (2 * k, 2 * k + 1), "overlap", (), "ann")
        record.take(Entry(question, "same" if truth[k] else "different"))
    return record


def test_a_machine_that_goes_by_the_distances_weighs_nothing_unless_it_is_right():
    rng = np.random.default_rng(0)
    closeness = rng.random(400)
    near, truth = closeness < 0.2, rng.random(400) < 0.3 - 0.3 * closeness
    assert 0.7 < (near == truth).mean() < 0.9

    def weights(said, truth, n_audits=40):
        return machine_record(said, truth, closeness, n_audits).trust()[MACHINE].weight

    # It may know more than the distances as long as nobody has found a mistake, or if its mistakes are few.
    assert weights(near, truth) == (0, 0)
    assert min(weights(near, truth, 0)) > 0
    assert min(weights(near, near)) > 0.5
    # As often wrong, but not where the distances mislead.
    other = truth ^ (rng.random(400) < (near != truth).mean())
    assert min(weights(other, truth)) > 0.02


def test_a_machine_is_audited_by_questions_of_people_too():
    asker = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.5)
    for _ in range(30):
        question = asker.ask("ann")
        asker.tell(question, true_answer(question, Y))
    machine_answers(asker, Y, 40, 0.2, 0)
    assert asker.error_rates()[MACHINE].audits > 5


def test_repeats_are_counted():
    asker = Asker(X, strategy="random", random_state=0, refit_every=10**6, repeat=0.3)
    machine_answers(asker, Y, 200, 0.0, 0, flips=0.2)
    found = asker.error_rates()[MACHINE]
    assert found.repeats > 30
    assert found.inconsistent > 5
    assert found.answers == 200
    assert asker.consistency().n == 0  # of people


def test_answers_of_a_machine_that_says_same_to_everything_weigh_nothing():
    asker = Asker(X, strategy="random", random_state=0, refit_every=10**6, overlap=0.3)
    for _ in range(200):
        asker.tell(asker.ask(MACHINE), "same")
    assert asker.answered().n_must_link == 200
    audit_all(asker, Y)
    people = {pair for question, _ in asker.log if question.annotator == "ann" for pair in question.pairs}
    known = asker.answered()
    weight = [w for pair, w in zip(known.must_link.tolist(), known.must_link_weight) if tuple(pair) not in people]
    assert max(weight, default=0.0) < 0.1


@pytest.mark.parametrize("kind", ["wrong", "same", "different"])
def test_a_machine_that_knows_nothing_does_no_harm(kind):
    """Of 300 answers 40 are audited: a learner is as good as with the audits alone."""
    gains, weights = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        pairs = np.array([sorted(rng.choice(len(Y), 2, replace=False)) for _ in range(400)])
        pairs = np.unique(pairs, axis=0)[rng.permutation(len(np.unique(pairs, axis=0)))[:300]]
        truth = Y[pairs[:, 0]] == Y[pairs[:, 1]]
        said = {
            "wrong": ~truth,
            "same": np.ones(300, dtype=bool),
            "different": np.zeros(300, dtype=bool),
        }[kind]
        record = Record()
        for who, purpose, answers in ((MACHINE, "pair", said), ("ann", "overlap", truth[:40])):
            for pair, same in zip(pairs.tolist(), answers):
                question = Question(f"{who}-{pair}", "same", tuple(pair), purpose, (), who)
                record.take(Entry(question, "same" if same else "different"))
        weight = np.array(record.trust()[MACHINE].weight)
        weights.append(weight[np.unique(said.astype(int))].max())
        votes = np.where(said, 1, -1) * weight[said.astype(int)]
        votes[:40] += np.where(truth[:40], 1, -1)
        known = [
            Constraints(
                pairs[given > 0],
                pairs[given < 0],
                len(Y),
                must_link_weight=given[given > 0],
                cannot_link_weight=-given[given < 0],
                on_conflict="drop",
            )
            for given in (np.where(truth, 1.0, -1.0) * (np.arange(300) < 40), votes)
        ]
        rows = np.column_stack([X, 3 * rng.standard_normal((len(X), 6))])
        alone, both = (
            LinearPairLens(2, random_state=0)
            .fit(rows, constraints=each)
            .score(rows, constraints=Constraints.from_labels(Y))
            for each in known
        )
        gains.append(both - alone)
    assert np.mean(gains) > -0.02
    if kind != "different":
        assert max(weights) < 0.05


@pytest.mark.parametrize("says_same", [0.5, 0.33])
@pytest.mark.parametrize(("audits", "typical", "seldom_above"), [(15, 0.15, 0.7), (40, 0.1, 0.35)])
def test_a_machine_that_guesses_seldom_looks_useful(says_same, audits, typical, seldom_above):
    """Of pairs of which a third is the same; by chance some of the machines agree with the person."""
    largest = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        truth, said = rng.random(audits) < 0.33, rng.random(audits) < says_same
        record = Record()
        for who, purpose, answers in ((MACHINE, "pair", said), ("ann", "overlap", truth)):
            for k, same in enumerate(answers):
                question = Question(f"{who}-{k}", "same", (2 * k, 2 * k + 1), purpose, (), who)
                record.take(Entry(question, "same" if same else "different"))
        largest.append(max(record.trust()[MACHINE].weight))
    assert np.median(largest) < typical
    assert np.quantile(largest, 0.9) < seldom_above


def test_weights_follow_the_audits():
    assert worth_of(0.05, 0.0) == 1
    assert worth_of(0.2, 0.2) == pytest.approx(0.64)
    assert worth_of(0.4, 0.5) == pytest.approx(np.log(1.5) / 4)
    assert worth_of(0.5, 0.5) == 0
    weights = []
    for wrong in (0.0, 0.2, 0.4):
        asker = Asker(X, strategy="random", random_state=1, refit_every=10**6, overlap=0.3)
        machine_answers(asker, Y, 300, wrong, 1)
        audit_all(asker, Y)
        known = asker.constraints()
        weight = np.concatenate([known.must_link_weight, known.cannot_link_weight])
        weights.append(weight[weight < 1].mean())
    assert weights[0] > 1.2 * weights[1] > 1.8 * weights[2]


def test_the_person_outvotes_the_machine():
    asker = Asker(X, strategy="random", random_state=0, refit_every=10**6)
    asker.tell(Question.same(0, 1, id="1", annotator=MACHINE), "same")
    assert asker.answered().n_must_link == 1
    asker.tell(Question("2", "same", (0, 1), "overlap", annotator="ann"), "different")
    assert asker.answered().n_must_link == 0
    assert asker.answered().n_cannot_link == 1


def test_screens_are_audited_as_one_question():
    rows, groups = (0, 1, 2), (4, 5)
    log = [
        Entry(Question("1", "place", rows, "place", groups, MACHINE), "1"),
        Entry(Question("2", "place", rows, "overlap", groups, "ann"), "2"),
        Entry(Question("3", "place", rows, "repeat", groups, MACHINE), "2"),
        Entry(Question("4", "place", rows, "overlap", groups, "ben"), "unsure"),
    ]
    found = error_rates(log)[MACHINE]
    assert (found.answers, found.audits, found.wrong, found.repeats, found.inconsistent) == (2, 1, 1, 1, 1)
    record = Record()
    for entry in log:
        record.take(entry)
    assert set(record.rates()) == {MACHINE}


def test_preferences_weigh_the_answers_of_machines():
    scores = X[:, 0]
    asker = PreferenceAsker(X, random_state=0, overlap=0.3, refit_every=20)
    machine_answers(asker, scores, 80, 0.3, 0)
    audit_all(asker, scores)
    weight = asker.preferences().weight
    assert weight.min() < 0.5
    assert weight.max() >= 0.9
    assert asker.error_rates()[MACHINE].audits > 10


def test_only_names_make_machines():
    assert is_machine("machine:m")
    assert not is_machine("ann")
    assert not is_machine(None)
    asker = Asker(X, random_state=0)
    asker.tell(asker.ask("ann"), "same")
    assert asker.error_rates() == {}
