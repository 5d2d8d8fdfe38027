"""Time of predictions, for each form of a model.

It depends on the machine and only advises.
"""

import numpy as np
from scipy import sparse

from marginbench.solvers import BSCA, SMO, LinearSDCA, Nystrom, RandomFourierFeatures

_MODELS = {
    "expansion": lambda: SMO(gamma=0.05),
    "budget": lambda: BSCA(gamma=0.05, budget=200, max_epochs=2, random_state=0),
    "landmarks": lambda: Nystrom(gamma=0.05, n_components=200, random_state=0),
    "random features": lambda: RandomFourierFeatures(gamma=0.05, max_epochs=20, random_state=0),
    "linear": lambda: LinearSDCA(max_epochs=20, random_state=0),
}


class Predict:
    params = (list(_MODELS), ["dense", "sparse"])
    param_names = ("model", "storage")
    timeout = 120
    rounds = 2
    repeat = (3, 10, 5.0)

    def setup(self, model, storage):
        rng = np.random.RandomState(0)
        X = rng.standard_normal((12_000, 50)).astype(np.float32)
        if storage == "sparse":
            X = sparse.csr_matrix(X * (rng.uniform(size=X.shape) < 0.1))
        y = np.where(rng.uniform(size=2000) < 0.5, 1.0, -1.0)
        self.X, self.Z = X[:2000], X[2000:]
        self.model = _MODELS[model]().fit(self.X, y)
        self.model.predict(self.Z[:10])

    def time_predict(self, model, storage):
        self.model.predict(self.Z)

    def peakmem_predict(self, model, storage):
        self.model.predict(self.Z)
