"""The quickstart study's tasks and solvers, commit by commit.

The ``track_`` numbers are deterministic for a seed, so any change of them is a change of the code;
``time_`` and ``peakmem_`` depend on the machine and only advise. Lower is better everywhere.
"""

from harness.study import load_study
from harness.workbench import estimator_and_data, planned_runs, watch

_STUDY = load_study("quickstart")

# A percentage point above the reference optimum's test error: every solver gets there.
_TARGET_ABOVE_REFERENCE = 0.01
# Below this relative suboptimality a change is noise, and a baseline of zero would make any noise
# a regression.
_SUBOPTIMALITY_FLOOR = 1e-3


class Quickstart:
    params = ([task.label for task in _STUDY.task], [entry.label for entry in _STUDY.solver])
    param_names = ("task", "solver")
    timeout = 300
    # Enough samples for asv's test of a difference: six per side or more.
    rounds = 4
    repeat = (2, 4, 20.0)

    def setup_cache(self):
        return planned_runs(_STUDY)

    def setup(self, runs, task, solver):
        self.run = runs[task, solver]
        if self.run.skip_reason:
            raise NotImplementedError(self.run.skip_reason)
        if self.run.failure:
            raise RuntimeError(self.run.failure)
        self.estimator, self.data = estimator_and_data(self.run)
        # Compiles what is not compiled yet, outside the clock.
        self.estimator.fit(self.data.X_train, self.data.y_train)

    def time_fit(self, runs, task, solver):
        self.estimator.fit(self.data.X_train, self.data.y_train)

    def peakmem_fit(self, runs, task, solver):
        self.estimator.fit(self.data.X_train, self.data.y_train)

    def track_test_error(self, runs, task, solver):
        return 100 * self._finished().result.test_error

    track_test_error.unit = "percent"

    def track_support_vectors(self, runs, task, solver):
        return self._finished().result.n_support

    track_support_vectors.unit = "support vectors"

    def track_suboptimality(self, runs, task, solver):
        if self.run.solver_info.scalarization is None:
            raise NotImplementedError(f"{solver} does not minimise the SVM objective")
        reference = self.run.reference.primal
        excess = (self._finished().result.primal - reference) / reference
        return max(excess, _SUBOPTIMALITY_FLOOR)

    track_suboptimality.unit = "relative"

    def track_kernel_evals_to_target(self, runs, task, solver):
        if not self.run.solver_info.instrumented:
            raise NotImplementedError(f"{solver} does not count kernel evaluations")
        target = self.run.reference.test_error + _TARGET_ABOVE_REFERENCE
        for checkpoint in self._finished().trace:
            if checkpoint.test_error <= target:
                return checkpoint.kernel_evals
        raise RuntimeError(f"{solver} never reaches a test error of {100 * target:.2f} %")

    track_kernel_evals_to_target.unit = "kernel evaluations"

    def _finished(self):
        watched = watch(self.run)
        if watched.result.status not in ("converged", "budget"):
            raise RuntimeError(f"{watched.result.status}: {watched.result.reason}")
        return watched
