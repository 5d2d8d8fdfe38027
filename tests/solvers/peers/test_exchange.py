"""Models as SVC and as LIBSVM's model files: the same scores there, and LIBSVM's own here."""

import re
import subprocess

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, make_blobs, make_moons
from sklearn.svm import SVC

from marginbench import (
    BSGD,
    SMO,
    LinearSDCA,
    Perceptron,
    RandomFourierFeatures,
    load_solver,
    read_libsvm,
    to_svc,
    write_libsvm,
)

POINTS, SIDES = make_moons(150, noise=0.3, random_state=0)
#: LIBSVM's -t and -d, -g, -r for the parameters of each kernel.
KERNELS = {
    "rbf": ({"gamma": 0.7}, ("-t", "2", "-g", "0.7")),
    "poly": (
        {"gamma": 0.5, "degree": 2, "coef0": 1.0},
        ("-t", "1", "-g", "0.5", "-d", "2", "-r", "1"),
    ),
    "linear": ({}, ("-t", "0")),
}
storages = pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])


@storages
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("labels", [(-1, 1), ("no", "yes")])
def test_an_svc_has_the_model(storage, kernel, labels):
    X, y = storage(POINTS), np.array(labels)[SIDES]
    ours = SMO(kernel, fit_intercept=True, dtype="float64", **KERNELS[kernel][0]).fit(X, y)
    svc = to_svc(ours)
    np.testing.assert_allclose(svc.decision_function(X), ours.decision_function(X), atol=1e-10)
    np.testing.assert_array_equal(svc.predict(X), ours.predict(X))
    theirs = SVC(**svc.get_params()).fit(X, y)
    np.testing.assert_allclose(svc.decision_function(X), theirs.decision_function(X), atol=0.02)
    # It holds what theirs does.
    assert vars(svc).keys() == vars(theirs).keys()
    sides = SIDES[svc.support_]
    assert sides.tolist() == [0] * svc.n_support_[0] + [1] * svc.n_support_[1]
    assert svc.fit_status_ == theirs.fit_status_
    np.testing.assert_allclose(
        POINTS[svc.support_], sparse.csr_matrix(svc.support_vectors_).toarray()
    )


@pytest.mark.parametrize(
    "solver",
    [
        *(SMO(kernel, dtype="float64", **given) for kernel, (given, _) in KERNELS.items()),
        # Without training points, or without C.
        *(BSGD(budget=10, dtype="float64"), LinearSDCA(), Perceptron(dtype="float64")),
    ],
)
def test_a_file_read_again_is_the_model(solver, tmp_path):
    ours = solver.fit(POINTS, 3 - 5 * SIDES)
    scores = ours.decision_function(POINTS)
    np.testing.assert_allclose(to_svc(ours).decision_function(POINTS), scores, atol=1e-10)
    write_libsvm(ours, tmp_path / "model")
    found = read_libsvm(tmp_path / "model", n_features=2)
    assert (found.classes_.tolist(), found.n_iter_) == ([-2, 3], 0)
    np.testing.assert_allclose(found.decision_function(POINTS), scores, atol=1e-10)
    np.testing.assert_array_equal(found.predict(POINTS), ours.predict(POINTS))
    found.save(tmp_path / "solver.npz")
    again = load_solver(tmp_path / "solver.npz")
    np.testing.assert_array_equal(again.predict(POINTS), ours.predict(POINTS))


def tool(*words):
    try:
        subprocess.run(words, check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        pytest.skip(f"{words[0]} of LIBSVM is not installed")


@pytest.mark.parametrize("kernel", KERNELS)
def test_libsvms_programs_agree(kernel, tmp_path):
    parameters, options = KERNELS[kernel]
    y = np.array([7, 3] if kernel == "poly" else [-1, 1])[SIDES]
    data, model, out = (str(tmp_path / name) for name in ("data", "model", "out"))
    dump_svmlight_file(POINTS, y, data, zero_based=False)
    ours = SMO(kernel, fit_intercept=True, dtype="float64", **parameters).fit(POINTS, y)
    write_libsvm(ours, model)
    tool("svm-predict", "-q", data, model, out)
    np.testing.assert_array_equal(np.loadtxt(out), ours.predict(POINTS))
    tool("svm-train", "-q", *options, data, model)
    tool("svm-predict", "-q", data, model, out)
    theirs = read_libsvm(model)
    np.testing.assert_array_equal(theirs.predict(POINTS), np.loadtxt(out))
    # Both stop at a violation of 0.001.
    scores = ours.decision_function(POINTS)
    np.testing.assert_allclose(theirs.decision_function(POINTS), scores, atol=0.02)


def test_what_is_no_svc_says_why(tmp_path):
    X, y = make_blobs(40, centers=3, random_state=0)
    several = SMO().fit(X, y)
    with pytest.raises(ValueError, match=r"one-vs-rest; it has one for each of its estimators_"):
        to_svc(several)
    assert to_svc(several.estimators_[0]).classes_.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"is no SVC of two classes: a Fourier expansion$"):
        to_svc(RandomFourierFeatures().fit(POINTS, SIDES))
    with pytest.raises(ValueError, match="SVC has no laplacian kernel"):
        to_svc(SMO("laplacian").fit(POINTS, SIDES))
    for labels in (["no", "yes"], [-3, 2**31]):
        words = re.escape(f"labels are whole numbers of 32 bits, got {labels}")
        with pytest.raises(ValueError, match=words):
            write_libsvm(SMO().fit(POINTS, np.array(labels)[SIDES]), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


HEADER = b"svm_type c_svc\nkernel_type rbf\ngamma 1\nnr_class 2\ntotal_sv 1\nrho 0\nlabel 1 -1\n"
MODEL = HEADER + b"SV\n1 1:2 \n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no model file of LIBSVM"),
        (b"\xff\xfe\nSV\n", "is no model file of LIBSVM"),
        (MODEL.replace(b"rho", b"\nrho"), "is no model file of LIBSVM"),
        (MODEL.replace(b"c_svc", b"epsilon_svr"), "holds no classifier of two classes"),
        (MODEL.replace(b"rbf", b"sigmoid"), "has none of the kernels rbf, polynomial, linear"),
        (MODEL.replace(b"total_sv 1", b"total_sv 2"), "is damaged: 1 of its 2 vectors are there"),
        (MODEL.replace(b"gamma 1\n", b""), "is damaged: 'gamma'"),
        (MODEL.replace(b"1:2", b"1:x"), "is damaged: "),
        (MODEL.replace(b"label 1 -1", b"label 1 1"), "is damaged: its labels are"),
        (MODEL.replace(b"1 1:2", b"nan 1:2"), "is damaged: a number is not finite"),
        (MODEL.replace(b"gamma 1", b"gamma -1"), "bad is damaged: gamma"),
    ],
)
def test_a_file_that_is_no_such_model_says_why(content, message, tmp_path):
    for good in (MODEL, MODEL.replace(b"\n", b"\r\n")):
        (tmp_path / "good").write_bytes(good)
        assert read_libsvm(tmp_path / "good").predict([[2.0]]).tolist() == [1]
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_libsvm(tmp_path / "bad")
