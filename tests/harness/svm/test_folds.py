"""Cross-validation: stratified folds that never overlap, and runs, records and pages of them."""

import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import PredefinedSplit, cross_val_score

import marginbench
from marginbench import SMO
from marginbench.data_loaders import DataError, Dataset, load
from marginbench.harness.evaluation.judging import fold_data, fold_numbers, load_task_data
from marginbench.harness.evaluation.svm import Fold
from marginbench.harness.execution.runner import run_study
from marginbench.harness.results.journal import Journal

from ..answers import InProcess

DATA = {"n_train": 101, "n_test": 20}
BOARD = {"dataset": "checkers", "dataset_params": DATA, "gamma": 10.0, "C": 1.0, "folds": 3}


@pytest.mark.parametrize(("n_classes", "of"), [(2, 2), (7, 5)])
def test_folds_are_stratified_and_cover_every_point_once(n_classes, of):
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(n_classes).repeat(2), rng.integers(n_classes, size=90)])
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


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_a_fold_has_only_points_of_the_training_part_read_only_as_they_are_stored(storage):
    X = storage(np.arange(60.0, dtype=np.float32).reshape(20, 3))
    y = np.tile([1, -1], 10).astype(np.int8)
    whole = Dataset("s", {}, X, y, X[:2], y[:2], "f" * 64, "", "")
    fold = Fold.of_seed(4, 5)
    assert (fold.number, fold.permutation) == (1, 1)
    part, numbers = fold_data(whole, fold), fold_numbers("s", y, fold)
    for points, labels, chosen in (
        (part.X_train, part.y_train, numbers != 1),
        (part.X_test, part.y_test, numbers == 1),
    ):
        assert sparse.issparse(points) == sparse.issparse(X)
        assert (points != X[chosen]).sum() == 0
        np.testing.assert_array_equal(labels, y[chosen])
        values = points.data if sparse.issparse(points) else points
        assert not any(array.flags.writeable for array in (values, labels))
    assert (part.n_train, part.n_test) == fold.sizes(20)
    assert part.fingerprint == fold.fingerprint(whole.fingerprint) != whole.fingerprint


def test_data_that_make_no_folds_are_refused():
    for y, message in (
        ([0, 0, 1, 1], "d: 4 training points do not make 5 folds"),
        ([0, 0, 0, 0, 0, 3], "d: class 3 has one training point; folds need two"),
    ):
        with pytest.raises(DataError, match=message):
            fold_numbers("d", np.array(y), Fold.of_seed(5, 0))
    just = fold_numbers("d", np.array([0, 0, 1, 1]), Fold.of_seed(4, 0))
    assert sorted(just) == [0, 1, 2, 3]


def test_every_fold_has_its_own_data_and_reference_and_the_errors_of_cross_validation(
    tmp_path, make_study
):
    """SMO and SBP on three folds and on one fold of the next permutation."""
    own = {"tol": 1e-6, "dtype": "float64"}
    study = make_study(
        task=[BOARD],
        solver=[{"name": "SMO", "params": own}, {"name": "SBP", "params": {"max_epochs": 2}}],
        seeds=4,
    )
    run_study(study, tmp_path, executor=InProcess())
    records = {(record.solver, record.seed): record for record in Journal(tmp_path).records()}
    assert sorted(records) == [(name, seed) for name in ("SBP", "SMO") for seed in range(4)]
    smo, sbp = ([records[name, seed] for seed in range(4)] for name in ("SMO", "SBP"))
    # SMO is deterministic, but its data are not the same.
    assert len({record.key for record in smo}) == 4
    for column in ("fingerprint", "reference_hash", "reference_primal"):
        values = [getattr(record, column) for record in smo]
        assert len(set(values)) == 4, column
        assert values == [getattr(record, column) for record in sbp]
    assert len({json.loads(record.params)["nu"] for record in sbp}) == 4
    for seed, record in enumerate(smo):
        assert record.fingerprint == load_task_data(study.task[0].problem(seed)).fingerprint
        # Optimal on its own fold.
        assert abs(record.suboptimality) < 1e-5
    whole = load("checkers", DATA)
    folds = fold_numbers("checkers", whole.y_train, Fold.of_seed(3, 0))
    scores = cross_val_score(
        SMO(gamma=10.0, C=1.0, **own), whole.X_train, whole.y_train, cv=PredefinedSplit(folds)
    )
    assert [1 - record.test_error for record in smo[:3]] == pytest.approx(list(scores))
    assert [(r.n_train, r.n_test) for r in smo[:3]] == [(67, 34), (67, 34), (68, 33)]
    page = marginbench.report(tmp_path).read_text()
    assert "seed s trains on all but one fold of the dataset" in page
    assert "3-fold cross-validation" in page
