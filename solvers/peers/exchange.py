"""Models as SVC objects and as LIBSVM's model files, and those files as models."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC
from sklearn.utils.validation import check_is_fitted

from ...data_loaders.atomic import replacing
from ..interface.base import Solver
from ..interface.problem import Solution
from ..kernels import Linear, kernel_class, make_kernel
from ..models import BudgetExpansion, KernelExpansion, LinearModel
from .libsvm import LIBSVM, svc_kernel

#: What LIBSVM's files call the kernels.
_NAMES = {"rbf": "rbf", "poly": "polynomial", "linear": "linear"}


def to_svc(solver: Solver) -> SVC:
    """A fitted scikit-learn SVC with the model of a solver, for what takes only an SVC.

    Parameters
    ----------
    solver : Solver
        Fitted to two classes, with the kernel "rbf", "poly" or "linear". A model on a budget has
        no positions in the training set: ``support_`` counts its points. A linear model is one
        support vector, its weights. The points of both are dense, so that the SVC predicts dense
        points only.

    Returns
    -------
    sklearn.svm.SVC
        Its kernel entries are float64, so its scores differ from those of a float32 model by their
        rounding.

    Raises
    ------
    ValueError
        For another kind of model, of more classes, or without support vectors.
    """
    check_is_fitted(solver)
    model, name = solver.model_, type(solver).__name__
    if isinstance(model, LinearModel):
        model = BudgetExpansion(Linear(), model.weights[None, :], np.ones(1), model.intercept)
    if not isinstance(model, KernelExpansion | BudgetExpansion):
        more = "; it has one for each of its estimators_" if len(solver.classes_) > 2 else ""
        raise ValueError(f"the model of {name} is no SVC of two classes: a {model.kind}{more}")
    kernel, coef = svc_kernel(model.kernel), model.coef
    if kernel is None:
        raise ValueError(f"SVC has no {model.kernel.describe()['name']} kernel of its own")
    if model.n_support == 0:
        raise ValueError(f"the model of {name} has no support vectors")
    order = np.argsort(coef > 0, kind="stable")  # SVC wants one class after the other
    points = model.points[order].astype(np.float64)
    # A fit to two points sets what the versions of scikit-learn keep beside the model.
    ends = sparse.csr_matrix(([1.0], ([1], [0])), shape=(2, points.shape[1]))
    svc = SVC(C=float(getattr(solver, "C", 1.0)), **kernel)
    svc.fit(ends if sparse.issparse(points) else ends.toarray(), solver.classes_)
    dual = coef[None, order]
    if sparse.issparse(points):
        points.sort_indices()
        dual = sparse.csr_matrix(dual)
    svc.support_vectors_ = points
    svc.support_ = getattr(solver, "support_", np.arange(len(coef)))[order].astype(np.int32)
    svc._n_support = np.bincount(coef > 0, minlength=2).astype(np.int32)
    svc.dual_coef_, svc._dual_coef_ = dual, -dual
    svc.intercept_, svc._intercept_ = np.array([model.intercept]), np.array([-model.intercept])
    svc.fit_status_ = int(solver.status_ != "converged")
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(solver, name):
            setattr(svc, name, getattr(solver, name))
    return svc


def write_libsvm(solver: Solver, path: str | Path) -> None:
    """Write the model of a fitted solver as a model file of LIBSVM, for ``svm-predict``.

    Parameters
    ----------
    solver : Solver
        As for :func:`to_svc`; its classes are whole numbers of 32 bits, as LIBSVM's labels.
    path : str or Path
        An existing file is replaced once all is written.

    Raises
    ------
    ValueError
        For a model that LIBSVM does not have.
    """
    svc = to_svc(solver)
    classes = svc.classes_
    if classes.dtype.kind not in "fiub" or (classes != classes.astype("int32")).any():
        raise ValueError(f"LIBSVM's labels are whole numbers of 32 bits, got {classes.tolist()}")
    labels = [int(label) for label in classes]
    kernel = svc.get_params()
    lines = ["svm_type c_svc", f"kernel_type {_NAMES[svc.kernel]}"]
    lines += [f"{name} {kernel[name]!r}" for name in kernel_class(svc.kernel).parameters()]
    below, above = svc.n_support_
    # The positive label first: a point whose score is positive gets it.
    lines += ["nr_class 2", f"total_sv {below + above}", f"rho {-svc.intercept_[0]:.17g}"]
    lines += [f"label {labels[1]} {labels[0]}", f"nr_sv {above} {below}", "SV"]
    points = sparse.csr_matrix(svc.support_vectors_)
    dual = sparse.csr_matrix(svc.dual_coef_).toarray()[0]
    for j in [*range(below, below + above), *range(below)]:
        row = points[[j]]
        entries = zip(row.indices + 1, row.data, strict=True)
        lines.append(" ".join([f"{dual[j]:.17g}", *(f"{k}:{v:.17g}" for k, v in entries)]))
    with replacing(Path(path)) as sink:
        sink.write("".join(f"{line}\n" for line in lines).encode())


def read_libsvm(path: str | Path, n_features: int | None = None) -> Solver:
    """A fitted solver with the model of a file of LIBSVM, such as ``svm-train`` writes.

    Parameters
    ----------
    path : str or Path
        A model of two classes by ``svm-train -s 0`` or ``-s 1`` and ``-t 0``, ``1`` or ``2``.
    n_features : int, optional
        Number of features; that of the last one that a support vector has, if it is not given.

    Returns
    -------
    LIBSVM
        It predicts and can be saved. Its ``C`` is not that of the training, which no file holds.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no model file of LIBSVM, or holds a model of another kind.
    """
    content = Path(path).read_bytes().replace(b"\r\n", b"\n")
    header, mark, vectors = content.partition(b"\nSV\n")
    lines = [line.split() for line in header.decode("ascii", "replace").splitlines()]
    if not mark or not all(lines) or lines[0][0] != "svm_type":
        raise ValueError(f"{path} is no model file of LIBSVM")
    values: dict[str, Any] = {name: rest for name, *rest in lines}
    if values["svm_type"] not in (["c_svc"], ["nu_svc"]) or values.get("nr_class") != ["2"]:
        raise ValueError(f"{path} holds no classifier of two classes")
    kind = next((n for n, given in _NAMES.items() if values.get("kernel_type") == [given]), None)
    if kind is None:
        raise ValueError(f"{path} has none of the kernels {', '.join(_NAMES.values())}")
    try:
        read, names = {"degree": int}, kernel_class(kind).parameters()
        kernel: dict[str, Any] = {name: read.get(name, float)(values[name][0]) for name in names}
        labels, rho = [int(label) for label in values["label"]], float(values["rho"][0])
        points, coef = load_svmlight_file(BytesIO(vectors), n_features=n_features)
        if points.shape[0] != int(values["total_sv"][0]):
            raise ValueError(f"{points.shape[0]} of its {values['total_sv'][0]} vectors are there")
        if len(labels) != 2 or labels[0] == labels[1]:
            raise ValueError(f"its labels are {values['label']}")
        if not np.isfinite([rho, *coef]).all():
            raise ValueError("a number is not finite")
        built = make_kernel(kind, **kernel)
    except (KeyError, IndexError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    # The first label is the one of positive scores.
    sign = 1.0 if labels[0] > labels[1] else -1.0
    solver = LIBSVM(kernel=kind, dtype="float64", **kernel)
    solver.classes_ = np.sort(labels)
    solver.n_features_in_ = points.shape[1]
    solver.counters_ = None
    model = BudgetExpansion(built, points, sign * coef, -sign * rho, "float64")
    solver._take(Solution(model, 0, "converged"))
    return solver
