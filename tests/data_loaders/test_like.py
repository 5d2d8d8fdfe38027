"""Generators in the shapes of other datasets."""

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.svm import SVC

from marginbench.data_loaders import DataError, find, load, prototypes, sources
from marginbench.data_loaders.datasets.like import POINTS, TEXTS

NAMES = [*POINTS, *TEXTS]
#: Features, share of stored entries and share of +1, as printed for the datasets themselves
#: (BMRM07 table 1 for the shares of stored entries of covtype, web8, kdd99 and the texts).
PRINTED = {
    "susy": (18, 1.0, 0.458),
    "covtype": (54, 0.2222, 0.488),
    "mnist": (784, 0.19, 0.0975),
    "cifar10": (3072, 1.0, 0.1),
    "web8": (300, 0.039, 0.03),
    "kdd99": (122, 0.1286, 0.199),
    "rcv1": (47_236, 0.0016, 0.47),
    "real-sim": (20_958, 0.0025, 0.31),
    "astro-ph": (99_757, 0.0008, 0.5),
}


def stored(X) -> float:
    return (X.nnz if issparse(X) else np.count_nonzero(X)) / np.prod(X.shape)


@pytest.mark.parametrize("name", NAMES)
def test_the_shape_is_that_of_the_dataset(name):
    source = find(f"like:{name}")
    assert "synthetic" in source.summary
    assert f"not {name} itself" in source.summary
    data = load(source, {"n_train": 600, "n_test": 200})
    n_features, density, positive = PRINTED[name]
    assert (data.X_train.shape, data.X_test.shape) == ((600, n_features), (200, n_features))
    assert data.X_train.dtype == np.float32
    assert set(np.unique(data.y_train)) == {-1, 1}
    assert issparse(data.X_train) == (name in TEXTS or POINTS[name].sparse)
    assert stored(data.X_train) == pytest.approx(density, rel=0.03)
    # Exact for points; for texts, the threshold is that of 4000 other documents.
    tolerance = 0.05 if name in TEXTS else 1 / 600
    assert np.mean(data.y_train == 1) == pytest.approx(positive, abs=tolerance)


def test_every_dataset_has_the_number_of_points_of_its_model():
    for source in sources():
        if source.name.startswith("like:"):
            name = source.name.removeprefix("like:")
            find(name)  # the model is a dataset of its own
            assert source.parameters["seed"] == 0
    assert find("like:susy").parameters["n_train"] == 4_500_000
    assert find("like:kdd99").parameters["n_train"] == 4_898_431


def test_seed_and_sizes():
    small = load("like:web8", {"n_train": 160, "n_test": 320, "seed": 3})
    large = load("like:web8", {"n_train": 1600.0, "n_test": 320, "seed": 3})
    other = load("like:web8", {"n_train": 160, "n_test": 320, "seed": 4})
    assert (small.X_test != large.X_test).nnz == 0
    assert (small.X_test != other.X_test).nnz > 0
    assert (small.X_train[:160] != small.X_test[:160]).nnz > 0


def test_blocks_do_not_change_the_kind_of_points(monkeypatch):
    monkeypatch.setattr(prototypes, "_BLOCK_ENTRIES", 1000)
    shape = POINTS["kdd99"]
    X = prototypes.generate(shape, 500, 2, 0).train.X
    assert X.shape == (500, 122)
    assert X.has_canonical_format
    words = X.toarray()[:, 38:]
    for start, stop in ((0, 3), (3, 73), (73, 84)):
        np.testing.assert_array_equal(words[:, start:stop].sum(axis=1), np.ones(500))


def test_points_of_web_pages_are_binary():
    X = prototypes.generate(POINTS["web8"], 300, 2, 0).train.X
    assert set(X.data) == {1.0}


@pytest.mark.parametrize("name", ["susy", "mnist", "kdd99"])
def test_flipped_labels_are_the_error_that_is_left(name):
    source = find(f"like:{name}")
    data = load(source, {"n_train": 2000, "n_test": 2000})
    model = SVC(gamma=source.default_gamma, C=10.0).fit(data.X_train, data.y_train)
    error = 1 - model.score(data.X_test, data.y_test)
    flipped = POINTS[name].flipped
    # Three standard deviations of the share of flipped labels below; 2000 points teach nearly all.
    assert flipped - 3 * np.sqrt(flipped / 2000) < error < flipped + 0.03


def test_every_bit_is_the_same_everywhere():
    """No function of a mathematical library and no sum takes part in these numbers."""
    data = load("like:susy", {"n_train": 16, "n_test": 16})
    assert data.fingerprint == "3136e347c7ae000bc36973ceee11d1b27fafbe086cb7542eba3ddb5cd5a0ba3c"


@pytest.mark.parametrize(
    ("params", "complaint"),
    [
        ({"n_train": 1}, "like:susy: n_train must be between 2 and 100000000, got 1"),
        ({"n_test": 2.5}, "like:susy: n_test must be an integer, got 2.5"),
        ({"seed": -1}, "like:susy: seed must be 0 or more, got -1"),
        ({"noise": 1}, "like:susy: unknown parameter 'noise'"),
    ],
)
def test_wrong_parameters_are_named(params, complaint):
    with pytest.raises(DataError) as caught:
        load("like:susy", params)
    assert str(caught.value).startswith(complaint)


def test_the_cached_file_has_no_colon(cache):
    load("like:web8", {"n_train": 20, "n_test": 20})
    assert all(":" not in path.name for path in cache.iterdir())
    with pytest.raises(DataError, match=r"unknown dataset 'like:sussy' \(did you mean 'like:susy'"):
        find("like:sussy")
