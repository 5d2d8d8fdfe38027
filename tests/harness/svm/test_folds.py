"""Cross-validation: stratified folds that never overlap, and runs, records and pages of them."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import PredefinedSplit, cross_val_score

import marginbench
from marginbench import SMO
from marginbench.data_loaders import DataError, Dataset, load
from marginbench.harness.evaluation.judging import (
    fold_data,
    fold_numbers,
    load_task_data,
)
from marginbench.harness.evaluation.svm import Fold
from marginbench.harness.execution.progress import PlainProgress
from marginbench.harness.execution.runner import run_study
from marginbench.harness.execution.workbench import InProcess
from marginbench.harness.results.journal import Journal

BOARD = {
    "dataset": "checkers",
    "dataset_params": {"n_train": 101, "n_test": 20},
    "gamma": 10.0,
    "C": 1.0,
    "folds": 3,
}


@pytest.mark.parametrize("n_classes", [2, 7])
@pytest.mark.parametrize("of", [2, 5])
def test_folds_are_stratified_and_cover_every_point_once(n_classes, of):
    rng = np.random.default_rng(0)
    y = np.concatenate(
        [np.arange(n_classes), np.arange(n_classes), rng.integers(n_classes, size=90)]
    )
    numbers = fold_numbers("d", y, Fold.of_seed(of, 0))
    assert set(numbers) == set(range(of))
    for points in (numbers, *(numbers[y == label] for label in range(n_classes))):
        counts = np.bincount(points, minlength=of)
        assert counts.max() - counts.min() <= 1
    for seed in range(of):
        fold = Fold.of_seed(of, seed)
        n_test = int((numbers == seed).sum())
        assert fold.sizes(len(y)) == (len(y) - n_test, n_test)
        # The seeds of one cross-validation share the permutation; the next one has another.
        np.testing.assert_array_equal(fold_numbers("d", y, fold), numbers)
    assert (fold_numbers("d", y, Fold.of_seed(of, of)) != numbers).any()


def test_points_are_dealt_out_class_by_class_in_the_order_of_a_fixed_stream():
    y = np.array([1, -1, 1, -1, 1, 1, -1])
    keys = np.random.PCG64(4).random_raw(7)
    order = sorted(range(7), key=lambda point: (y[point], keys[point]))
    numbers = fold_numbers("d", y, Fold(of=3, number=0, permutation=4))
    assert [numbers[point] for point in order] == [0, 1, 2, 0, 1, 2, 0]


def test_a_fold_has_only_points_of_the_training_part():
    whole = load("digits", {"positive": "none"})
    fold = Fold.of_seed(5, 7)
    part = fold_data(whole, fold)
    assert (fold.number, fold.permutation) == (2, 1)
    numbers = fold_numbers("digits", whole.y_train, fold)
    np.testing.assert_array_equal(part.X_test, whole.X_train[numbers == 2])
    np.testing.assert_array_equal(part.y_train, whole.y_train[numbers != 2])
    assert (part.n_train, part.n_test) == fold.sizes(whole.n_train)
    assert part.fingerprint == fold.fingerprint(whole.fingerprint) != whole.fingerprint
    assert not any(
        values.flags.writeable for values in (part.X_train, part.y_train, part.X_test, part.y_test)
    )


def test_sparse_data_stay_sparse_and_read_only():
    X = sparse.random(20, 5, 0.4, format="csr", dtype=np.float32, random_state=0)
    y = np.tile([1, -1], 10).astype(np.int8)
    whole = Dataset("s", {}, X, y, X[:2], y[:2], "f" * 64, "", "")
    part = fold_data(whole, Fold.of_seed(4, 1))
    assert sparse.issparse(part.X_train)
    numbers = fold_numbers("s", y, Fold.of_seed(4, 1))
    np.testing.assert_array_equal(part.X_test.toarray(), X.toarray()[numbers == 1])
    assert not part.X_train.data.flags.writeable


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 0, 1, 1], "d: 4 training points do not make 5 folds"),
        ([0, 0, 0, 0, 0, 3], "d: class 3 has one training point; folds need two"),
    ],
)
def test_data_that_make_no_folds_are_refused(y, message):
    with pytest.raises(DataError, match=message):
        fold_numbers("d", np.array(y), Fold.of_seed(5, 0))


def records_of(results):
    return {(r.solver, r.seed): r for r in Journal(results).records()}


@pytest.fixture(scope="module")
def ran(tmp_path_factory, make_study):
    """SMO on three folds and on one fold of the next permutation."""
    folder = tmp_path_factory.mktemp("folds")
    study = make_study(
        task=[BOARD],
        solver=[
            {"name": "SMO", "params": {"tol": 1e-6, "dtype": "float64"}},
            {"name": "SBP", "params": {"max_epochs": 2}},
        ],
        seeds=4,
    )
    run_study(study, folder, executor=InProcess())
    return study, folder


def test_the_errors_are_those_of_cross_validation(ran):
    study, folder = ran
    records = records_of(folder)
    whole = load("checkers", {"n_train": 101, "n_test": 20})
    folds = fold_numbers("checkers", whole.y_train, Fold.of_seed(3, 0))
    solver = SMO(gamma=10.0, C=1.0, tol=1e-6, dtype="float64")
    scores = cross_val_score(solver, whole.X_train, whole.y_train, cv=PredefinedSplit(folds))
    found = [1 - records["SMO", seed].test_error for seed in range(3)]
    assert found == pytest.approx(list(scores))
    sizes = [(records["SMO", seed].n_train, records["SMO", seed].n_test) for seed in range(3)]
    assert sizes == [(67, 34), (67, 34), (68, 33)]
    assert study.task[0].problem(3).fold == Fold(3, 0, 1)


def test_every_fold_has_its_own_data_and_reference(ran):
    study, folder = ran
    records = records_of(folder)
    # SMO is deterministic, but its data are not the same.
    assert sorted(records) == [(name, seed) for name in ("SBP", "SMO") for seed in range(4)]
    for column in ("key", "fingerprint", "reference_hash", "reference_primal"):
        values = [getattr(records["SMO", seed], column) for seed in range(4)]
        assert len(set(values)) == 4, column
        if column != "key":
            assert values == [getattr(records["SBP", seed], column) for seed in range(4)]
    for seed in range(4):
        record = records["SMO", seed]
        assert record.fingerprint == load_task_data(study.task[0].problem(seed)).fingerprint
        # Optimal on its own fold.
        assert abs(record.suboptimality) < 1e-5
        nu = json.loads(records["SBP", seed].params)["nu"]
        assert nu != json.loads(records["SBP", (seed + 1) % 4].params)["nu"]


def test_folds_that_no_seed_uses_are_told(tmp_path, make_study, capsys):
    study = make_study(task=[{**BOARD, "reference": False}], solver=[{"name": "Perceptron"}])
    run_study(study, tmp_path, executor=InProcess(), progress=PlainProgress())
    told = "checkers: only 1 of 3 folds are run; set seeds = 3 for all"
    assert told in capsys.readouterr().err
    page = marginbench.report(tmp_path).read_text()
    assert "seed s trains on all but one fold of the dataset" in page
    assert "3-fold cross-validation" in page
