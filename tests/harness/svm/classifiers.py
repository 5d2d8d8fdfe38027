"""Classifiers for the tests, and ways to go wrong."""

import numpy as np
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def make(alpha=1e-3, seed=None):
    return make_pipeline(StandardScaler(), SGDClassifier(alpha=alpha, random_state=seed))


def make_nothing():
    return {}


class Constant:
    """No scikit-learn estimator: only fit and predict."""

    def __init__(self, how="right"):
        self.how = how

    def fit(self, X, y):
        self.label = y[0]

    def predict(self, X):
        labels = np.full(X.shape[0], self.label)
        if len(labels) <= 40:
            return labels
        return {
            "right": labels,
            "one column": labels[:, None],
            "text": labels.astype(str),
            "objects": np.array([object()] * len(labels)),
            "ragged": [[1], [1, 2]],
            "nan": np.full(len(labels), np.nan),
            "another class": np.where(np.arange(len(labels)) == 5, 3, labels),
        }[self.how]


class Promises:
    """Says that it returns a dual point of the task's problem."""

    certificate = "dual"

    def __init__(self, kernel="rbf", C=1.0, tol=1e-3):
        self.kernel, self.C, self.tol = kernel, C, tol

    def fit(self, X, y):
        raise NotImplementedError

    def predict(self, X):
        raise NotImplementedError
