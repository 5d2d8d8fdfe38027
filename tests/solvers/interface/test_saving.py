"""Fitted solvers in files: the same predictions to the bit, no pickle, and errors in one line."""

import json
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from marginbench.solvers import (
    BSGD,
    KPCT,
    RBF,
    SMO,
    BundleClassifier,
    Hinge,
    LinearSDCA,
    Perceptron,
    RandomFourierFeatures,
    load_solver,
)


def saved_and_loaded(solver, path):
    solver.save(path)
    return load_solver(path)


def refused(path, match, *given):
    """The file is refused in one line that names it."""
    with pytest.raises(ValueError, match=match) as failure:
        load_solver(path, *given)
    assert str(failure.value).startswith(f"{path} ")
    assert "\n" not in str(failure.value)


#: A solver of each kind of model.
@pytest.mark.parametrize(
    "solver",
    [
        *(SMO(), LinearSDCA(random_state=3), KPCT(), BSGD(budget=8, random_state=3)),
        RandomFourierFeatures(random_state=3),
    ],
)
def test_a_loaded_solver_is_the_saved_one(solver, points, tmp_path):
    X, y = points
    for given in (X, sparse.csr_matrix(X)):
        solver.fit(given, y)
        loaded = saved_and_loaded(solver, tmp_path / "solver")
        assert type(loaded) is type(solver)
        assert loaded.get_params() == solver.get_params()
        for attribute in ("n_features_in_", "n_iter_", "status_", "counters_"):
            assert getattr(loaded, attribute) == getattr(solver, attribute)
        assert not hasattr(loaded, "feature_names_in_")
        scores = solver.decision_function(given)
        np.testing.assert_array_equal(loaded.decision_function(given), scores)
        np.testing.assert_array_equal(loaded.predict(given), solver.predict(given))
        for attribute, value in solver.model_.attributes().items():
            assert abs(getattr(loaded, attribute) - value).max() == 0
        assert loaded.fit(given, y).score(given, y) == solver.score(given, y)


def test_labels_keep_their_type_and_features_their_names(points, tmp_path):
    frame, y = pd.DataFrame(points[0], columns=["a", "b", "c"]), points[1]
    words = np.array(["ham", "spam"])
    for labels in (
        words,
        words.astype(object),
        *map(np.array, ([3, 7], [False, True], [-1.0, 2.0])),
    ):
        solver = LinearSDCA().fit(frame, labels[(y > 0).astype(int)])
        loaded = saved_and_loaded(solver, tmp_path / "solver")
        assert loaded.classes_.dtype == solver.classes_.dtype
        assert loaded.classes_.tolist() == labels.tolist()
        np.testing.assert_array_equal(loaded.predict(frame), solver.predict(frame))
    with pytest.raises(ValueError, match="should match those that were passed during fit"):
        loaded.predict(frame[["b", "a", "c"]])


def test_parameters_that_json_lacks_are_kept(points, tmp_path):
    X, y = points
    solvers = (
        SMO(RBF(0.3), class_weight={1: 2.0, -1: 0.5}, dtype=np.float64),
        SMO("poly", C=np.float64(2.0), degree=np.int64(2), class_weight="balanced", gamma="auto"),
        Perceptron(output="voted", random_state=np.int32(4)),
    )
    for solver in solvers:
        loaded = saved_and_loaded(solver.fit(X, y), tmp_path / "solver")
        for name, value in solver.get_params().items():
            expected = "float64" if value is np.float64 else value
            np.testing.assert_array_equal(getattr(loaded, name), expected)
        np.testing.assert_array_equal(loaded.decision_function(X), solver.decision_function(X))


def test_what_cannot_be_stored_is_refused_and_leaves_the_file_alone(points, tmp_path):
    X, y = points
    path = tmp_path / "solver"
    path.write_bytes(b"as it was")
    with pytest.raises(ValueError, match="a callable or custom kernel cannot be saved"):
        SMO(lambda A, B: A @ B.T).fit(X, y).save(path)
    with pytest.raises(ValueError, match=r"^random_state=Generator.* cannot be stored.*set_params"):
        LinearSDCA(random_state=np.random.default_rng(0)).fit(X, y).save(path)
    with pytest.raises(ValueError, match=r"^loss=.*Hinge.* cannot be stored"):
        BundleClassifier(loss=Hinge()).fit(X, y).save(path)
    with pytest.raises(NotFittedError):
        SMO().save(path)
    assert path.read_bytes() == b"as it was"
    assert [file.name for file in tmp_path.iterdir()] == ["solver"]


class Own(LinearSDCA):
    """A solver that marginbench does not know."""


def test_a_class_from_elsewhere_is_given_and_never_imported(points, tmp_path):
    path = tmp_path / "solver"
    solver = Own().fit(*points)
    solver.save(path)
    refused(path, r"holds a Own, which is no solver of marginbench: give its class, load_solver\(")
    loaded = load_solver(path, Own)
    assert type(loaded) is Own
    np.testing.assert_array_equal(loaded.coef_, solver.coef_)
    refused(path, "holds a Own, not a SMO", SMO)


#: Changes of a file's header, and what is said of them.
FOREIGN = {
    r"it is in format 2 of marginbench '\d.*reads format 1: save": lambda h: h.update(version=2),
    "says that it is a 'song'": lambda h: h.update(format="song"),
    "holds a os.system, which is no solver": lambda h: h.update({"class": "os.system"}),
    "'other'": lambda h: h["parameters"].update(other=1),
    "format": lambda h: h.clear(),
}


def test_a_foreign_file_is_an_error_in_one_line(points, tmp_path):
    path = tmp_path / "solver"
    SMO().fit(*points).save(path)
    with np.load(path) as stored:
        arrays = dict(stored)
    for message, change in FOREIGN.items():
        header = json.loads(str(arrays["header"]))
        change(header)
        with open(path, "wb") as sink:
            np.savez(sink, **{**arrays, "header": np.array(json.dumps(header))})
        refused(path, f"is not a saved solver.*{message}")
    # A pickle in it is not loaded.
    arrays["model.coef"] = np.array([print, 1], dtype=object)
    with open(path, "wb") as sink:
        np.savez(sink, allow_pickle=True, **arrays)
    refused(path, "Object arrays cannot be loaded")
    for content in (b"", b"PK\x03\x04", b"word,1\n"):
        path.write_bytes(content)
        refused(path, "is not a saved solver")
    with pytest.raises(FileNotFoundError):
        load_solver(tmp_path / "missing")


def test_damage_is_found_or_changes_nothing(points, tmp_path):
    X, y = points
    path = tmp_path / "solver"
    solver = LinearSDCA().fit(X, y)
    solver.save(path)
    whole, scores = path.read_bytes(), solver.decision_function(X)
    assert zipfile.is_zipfile(path)
    messages = []
    for position in range(0, len(whole), 37):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.testing.assert_array_equal(load_solver(path).decision_function(X), scores)
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 0.5 * len(range(0, len(whole), 37))
    assert all(text.startswith(f"{path} ") and "\n" not in text for text in messages)
    for length in range(0, len(whole), 307):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is not a saved solver"):
            load_solver(path)
