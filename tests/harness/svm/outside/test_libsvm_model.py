"""LIBSVM model files: the expansion that they describe, found again among the training points."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from sklearn.svm import SVC

from marginbench.harness.errors import EvaluationError
from marginbench.harness.evaluation.outside.libsvm_model import expansion_of

RBF = {"name": "rbf", "gamma": 0.7}
Array = npt.NDArray[Any]


def points(seed: int = 0, n: int = 120) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.7)
    X[40:60] = X[:20]  # Some occur twice.
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, 1, -1)
    return X, y


def written(svc: SVC, X: Array, first: int) -> list[str]:
    """A fitted SVC as svm-train writes it, with this label as the first one."""
    order = np.argsort(svc.dual_coef_[0] * first <= 0, kind="stable")
    coef, support = first * svc.dual_coef_[0][order], svc.support_[order]
    n_first = int((coef > 0).sum())
    lines = [
        *("svm_type c_svc", "kernel_type rbf", "gamma 0.7", "nr_class 2"),
        *(f"total_sv {len(coef)}", f"rho {-first * svc.intercept_[0]:.17g}"),
        *(f"label {first} {-first}", f"nr_sv {n_first} {len(coef) - n_first}", "SV"),
    ]
    for value, row in zip(coef, X[support], strict=True):
        pairs = (f"{j + 1}:{x:.8g}" for j, x in enumerate(row) if x)
        lines.append(f"{value:.17g} {' '.join(pairs)} ")
    return lines


@pytest.mark.parametrize("first", [1, -1])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_the_file_gives_the_solution_that_was_written(first: int, form: Any) -> None:
    X, y = points()
    svc = SVC(C=2.0, gamma=0.7).fit(X, y)
    model = expansion_of(written(svc, X, first), RBF, form(X), y)
    support, coef = model.arrays["support"], model.arrays["coef"]
    K = np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    scores = K[:, support] @ coef + model.intercept
    np.testing.assert_allclose(scores, svc.decision_function(X), rtol=0, atol=1e-12)
    # Points of the right class, none of them twice: the box of the dual holds for each.
    assert np.array_equal(np.sign(coef), y[support])
    assert len(np.unique(support)) == len(support) == len(svc.support_)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "kernel_type rbf",
            "kernel_type sigmoid",
            "kernel_type 'sigmoid'; the task has the kernel",
        ),
        ("svm_type c_svc", "svm_type nu_svc", "svm_type 'nu_svc', not 'c_svc'"),
        ("gamma 0.7", "gamma 0.8", "has gamma 0.8; the task has 0.7"),
        ("label 1 -1", "label 1 2", r"labels \(1, 2\), not -1 and 1"),
        ("label 1 -1", "label 1 -1 3", "it has 3 classes"),
        ("label 1 -1", "", "no LIBSVM model of two classes: 'label'"),
        ("SV", "", "it has no line SV"),
        ("1:", "7:", "its points have other features than the 4 of the task"),
        ("1:", "1:x", "could not convert string to float"),
        ("total_sv", "SV\n1 1:1\ntotal_sv", "no LIBSVM model of two classes: 'label'"),
    ],
)
def test_another_file_is_refused(old: str, new: str, message: str) -> None:
    X, y = points()
    text = "\n".join(written(SVC(C=2.0, gamma=0.7).fit(X, y), X, 1))
    with pytest.raises(EvaluationError, match=message):
        expansion_of(text.replace(old, new).splitlines(), RBF, X, y)


def test_a_point_of_its_own_is_refused() -> None:
    X, y = points()
    lines = written(SVC(C=2.0, gamma=0.7).fit(X, y), X, 1)
    lines[9] = f"{lines[9].split()[0]} 1:{X[0, 0] + 1e-3:.8g}"
    with pytest.raises(EvaluationError, match="support vector 1 of a class is no training point"):
        expansion_of(lines, RBF, X, y)


def test_a_point_that_occurs_too_often_is_refused() -> None:
    X, y = points()
    lines = written(SVC(C=2.0, gamma=0.7).fit(X, y), X, 1)
    lines[10] = lines[11] = lines[9]
    with pytest.raises(EvaluationError, match="or occurs more often than there"):
        expansion_of(lines, RBF, X, y)
