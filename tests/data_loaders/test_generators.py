"""The generators keep what they promise: shapes, distributions, seeds, and certificates."""

import math
import tracemalloc

import numpy as np
import pytest

from marginbench.data_loaders import find, generators, lap, ldfp, load

from .conftest import refused

QUADRIC = {"n_train": 20_000, "n_test": 5000, "n_features": 6, "flipped": 0.2}
TEXT = {"n_train": 3000, "n_test": 1000, "n_features": 2000, "density": 0.02}


@pytest.mark.parametrize(
    ("name", "params", "digest"),
    [
        ("checkers", {"n_train": 160, "n_test": 320}, "fe8a3b13d4bd"),
        ("quadric", QUADRIC, "a3877d6ae317"),
        ("random-text", {**TEXT, "n_train": 300, "n_test": 100}, "c8bd7fbb407f"),
        # A word in each document is the least that there can be.
        (
            "random-text",
            {"n_train": 99, "n_test": 50, "n_features": 500, "density": 0.002},
            "9ee994d6988b",
        ),
    ],
)
def test_the_seed_decides_and_the_test_part_does_not_depend_on_the_training_part(
    name, params, digest
):
    first, again, larger, other = (
        load(name, {**params, **changed})
        for changed in (
            {"seed": 3},
            {"n_train": float(params["n_train"]), "seed": np.int64(3)},
            {"n_train": 2 * params["n_train"], "seed": 3},
            {"seed": 4},
        )
    )
    assert first.fingerprint == again.fingerprint != other.fingerprint
    # In every release: results name the seed alone.
    assert first.fingerprint[:12] == digest
    assert first.params == {**find(name).parameters, **params, "seed": 3}
    assert (first.n_train, first.n_test) == (params["n_train"], params["n_test"])
    assert set(np.unique(first.y_train)) == {-1, 1}
    assert first.y_train.dtype == np.int8
    np.testing.assert_array_equal(first.y_test, larger.y_test)
    assert abs(first.X_test - larger.X_test).max() == 0
    assert abs(first.X_test - other.X_test).max() > 0
    n = min(first.n_train, first.n_test)
    assert abs(first.X_test[:n] - first.X_train[:n]).max() > 0


def test_points_of_the_checkers_fill_their_cells_before_noise_moves_them():
    data, noisy = (
        load("checkers", {"n_train": 16_000, "n_test": 100, "noise": noise}) for noise in (0, 0.02)
    )
    for X, y, n in ((data.X_train, data.y_train, 16_000), (data.X_test, data.y_test, 100)):
        assert X.dtype == np.float64
        cell = np.floor(X + 2).astype(int)
        counts = np.bincount(cell[:, 0] * 4 + cell[:, 1], minlength=16)
        assert (len(counts), counts.sum(), counts.max() - counts.min()) == (16, n, n % 16 > 0)
        np.testing.assert_array_equal(y, np.where(cell.sum(axis=1) % 2 == 0, 1, -1))
    # Standard deviation of a share of a tenth: sqrt(.1 * .9 / 16000) = .0024.
    for within in (data.X_train % 1).T:
        np.testing.assert_allclose(np.histogram(within, 10)[0] / 16_000, 0.1, atol=0.012)
    # The order of the rows says nothing.
    y = data.y_train.astype(float)
    assert abs(np.mean(y[1:] * y[:-1])) < 0.05
    assert abs(np.mean(y[:8000])) < 0.05
    moves = noisy.X_train - data.X_train
    np.testing.assert_array_equal(noisy.y_train, data.y_train)
    # Standard error of a standard deviation from 32000 draws: .4 %; of the mean: .00011.
    assert moves.std() == pytest.approx(0.02, rel=0.02)
    assert abs(moves.mean()) < 0.0006
    np.testing.assert_allclose(np.corrcoef(moves.T)[0, 1], 0, atol=0.04)


def test_labels_of_the_quadric_are_flipped_whatever_the_point(monkeypatch):
    monkeypatch.setattr(generators, "_BLOCK", 1 << 15)  # several blocks
    data = load("quadric", QUADRIC)

    def sides(X):
        squares = X.astype(np.float64) ** 2
        return np.where(squares[:, :3].sum(axis=1) > squares[:, 3:].sum(axis=1), 1, -1)

    wrong = data.y_train != sides(data.X_train)
    assert (load("quadric", {**QUADRIC, "flipped": 0}).y_test == sides(data.X_test)).all()
    ends = {"flipped": 0.5, "n_train": 10**8}
    assert ends.items() <= find("quadric").resolve(ends).items()
    assert data.X_train.dtype == np.float32
    assert (data.X_train.min(), data.X_train.max()) == pytest.approx((-1, 1), abs=1e-3)
    # Five standard deviations of a share.
    noise = 5 * np.sqrt(0.25 / 20_000)
    assert wrong.mean() == pytest.approx(0.2, abs=noise)
    assert np.mean(data.y_test != sides(data.X_test)) == pytest.approx(0.2, abs=2 * noise)
    assert np.mean(data.y_train == 1) == pytest.approx(0.5, abs=noise)
    near = np.abs(data.X_train[:, 0]) < 0.5
    assert wrong[near].mean() == pytest.approx(wrong[~near].mean(), abs=0.03)


def test_random_text_is_sparse_unit_rows_of_few_frequent_and_many_rare_words():
    data = load("random-text", {**TEXT, "n_train": 20_000})
    for X, n in ((data.X_train, 20_000), (data.X_test, 1000)):
        assert (X.shape, X.dtype) == ((n, 2000), np.float32)
        assert X.has_canonical_format
        assert (X.data > 0).all()
        np.testing.assert_allclose(X.multiply(X).sum(axis=1), 1.0, rtol=1e-5)
        # The number of words of a document varies by less than its square root.
        assert X.nnz / (n * 2000) == pytest.approx(0.02, rel=0.02)
    X = data.X_train
    share = np.bincount(X.indices, minlength=2000) / 20_000
    # Drawn with probability 1 / (rank log n): ten times the rank is a tenth of the share.
    assert share[0] > 0.9
    assert share[100:110].mean() / share[1000:1100].mean() == pytest.approx(10.0, rel=0.1)
    frequent, rare = (X[:, columns].sum() / X[:, columns].nnz for columns in ([0], slice(500, 600)))
    assert rare > 10 * frequent


def text(**params):
    source = find("random-text")
    return source.read({}, source.resolve(params)).train


def test_labels_of_random_text_can_be_learnt_but_for_noise(monkeypatch):
    params = {"n_train": 10_000, "n_test": 2, "n_features": 200, "density": 0.05}
    noisy = text(**params)
    monkeypatch.setattr(generators, "_NOISE", 0.0)
    exact = text(**params)
    assert (noisy.X != exact.X).nnz == 0
    # Normal scores of variance about one, with noise of deviation 0.2.
    assert np.mean(noisy.y != exact.y) == pytest.approx(math.atan(0.2) / math.pi, rel=0.2)
    w = np.linalg.lstsq(exact.X[:5000].toarray(), exact.y[:5000], rcond=None)[0]
    assert np.mean(np.where(exact.X[5000:] @ w > 0, 1, -1) != exact.y[5000:]) < 0.1


def test_random_text_of_the_shape_that_the_paper_prints_takes_little_memory():
    tracemalloc.start()
    X = text(n_train=20_000, n_test=2).X
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert X.shape[1] == 99_757
    assert X.nnz / 20_000 == pytest.approx(0.0008 * 99_757, rel=0.02)
    assert peak <= 3 * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)


@pytest.mark.parametrize(("m", "n", "kappa"), [(3, 50, 1.0), (40, 15, 5.0), (1, 4, 0.5)])
def test_feasibility_problems_come_with_their_answer(m, n, kappa):
    separable, inseparable = ldfp(m, n, kappa, seed=3), lap(m, n, seed=3, kappa=kappa)
    for A in (separable.A, inseparable.A):
        assert A.shape == (m, n)
        assert A.flags.c_contiguous
        np.testing.assert_allclose(np.linalg.norm(A, axis=0), 1, rtol=1e-14)
    np.testing.assert_allclose(np.linalg.norm(separable.y), 1, rtol=1e-14)
    assert (separable.y @ separable.A).min() > 0
    assert inseparable.x.min() >= 0
    assert inseparable.x.sum() == pytest.approx(1, rel=1e-14)
    assert np.linalg.norm(inseparable.A @ inseparable.x) <= 1e-14 * max(m, n)
    assert separable.x is inseparable.y is None
    np.testing.assert_array_equal(ldfp(m, n, kappa, seed=3).A, separable.A)
    np.testing.assert_array_equal(lap(m, n).A, lap(m, n, 0, 1.0).A)
    assert not np.array_equal(lap(m, n, seed=4, kappa=kappa).A, inseparable.A)


def test_kappa_multiplies_the_component_along_the_separator():
    plain, stretched = ldfp(6, 30, 1.0, seed=1), ldfp(6, 30, 4.0, seed=1)
    np.testing.assert_array_equal(plain.y, stretched.y)
    expected = plain.A + 3 * np.outer(plain.y, plain.y @ plain.A)
    expected /= np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(stretched.A, expected, rtol=0, atol=1e-14)
    # In three dimensions the height on the sphere is uniform; standard deviation of the mean .002.
    instance = ldfp(3, 20_000, seed=0)
    along = instance.y @ instance.A
    np.testing.assert_allclose(along.mean(), 0.5, atol=0.01)
    np.testing.assert_allclose(np.quantile(along, [0.1, 0.9]), [0.1, 0.9], atol=0.02)
    flat, flatter = (
        np.linalg.svd(lap(5, 2000, seed=0, kappa=kappa).A, compute_uv=False)[-1]
        for kappa in (1.0, 10.0)
    )
    assert flatter < 0.2 * flat


@pytest.mark.parametrize(
    ("name", "params", "complaint"),
    [
        ("checkers", {"n_train": 15}, "n_train must be between 16 and 100000000, got 15"),
        ("checkers", {"n_train": 16 * 10**9}, "and 100000000, got 16000000000"),
        ("checkers", {"n_train": 16.5}, "n_train must be an integer, got 16.5"),
        ("checkers", {"n_train": True}, "n_train must be an integer, got True"),
        ("checkers", {"seed": -1}, "seed must be 0 or more, got -1"),
        ("checkers", {"seed": 2**63}, "seed is a number of more than 64 bits"),
        ("checkers", {"noise": math.inf}, "noise must be a finite number from 0 to inf, got inf"),
        ("checkers", {"noise": False}, "noise must be a finite number from 0 to inf, got False"),
        ("checkers", {"n_trian": 16}, "unknown parameter 'n_trian' (did you mean 'n_train'?)"),
        ("quadric", {"n_features": 5}, "n_features must be between 2 and 100000, a multiple of 2,"),
        ("quadric", {"n_features": 0}, "n_features must be between 2 and"),
        ("quadric", {"flipped": 0.6}, "flipped must be a finite number from 0 to 0.5, got 0.6"),
        ("random-text", {"density": 0.6}, "density must be a finite number from 0 to 0.5, got 0.6"),
        (
            "mnist",
            {"positive": True},
            "positive must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 'none'",
        ),
        ("rcv1", {"topic": 11}, "topic must be a text, got 11"),
        ("rcv1", {"split": "half"}, "split must be one of 'published', 'swapped', got 'half'"),
        ("heart", {"n_train": 16}, "takes no parameters, got 'n_train'"),
        (
            "random-text",
            {"density": 0.001, "n_features": 500},
            "density must be 0.002 or more, got",
        ),
        ("ldfp", {"m": 0}, "m must be 1 or more, got 0"),
        ("ldfp", {"seed": -1}, "seed must be 0 or more, got -1"),
        ("ldfp", {"kappa": 0}, "kappa must be a finite number > 0, got 0"),
        ("lap", {"kappa": np.inf}, "kappa must be a finite number > 0"),
        ("lap", {"n": 1}, "n must be 2 or more, got 1"),
        ("ldfp", {"kappa": 1e200}, "kappa=1e+200 is beyond what float64"),
        ("ldfp", {"m": 30, "n": 50, "kappa": 1e-17}, "kappa=1e-17 is beyond what float64"),
        ("lap", {"kappa": 1e-200}, "kappa=1e-200 is beyond what float64"),
    ],
)
def test_wrong_parameters_are_named(name, params, complaint):
    if generate := {"ldfp": ldfp, "lap": lap}.get(name):
        message = refused(generate, **{"m": 3, "n": 5} | params)
    else:
        message = refused(load, name, params)
    assert message.startswith(f"{name}: ")
    assert complaint in message
