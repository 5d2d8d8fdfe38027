"""The quickstart study's tasks and solvers, commit by commit.

The ``track_`` numbers are deterministic for a seed, so any change of them is a change of the code;
``time_`` and ``peakmem_`` depend on the machine and only advise. Lower is better everywhere.
"""

from benchmarks.work import importable
from marginbench.harness.execution.workbench import estimator_and_data, planned_runs, watch
from marginbench.harness.study.toml import load_study

_STUDY = load_study("quickstart")

# A percentage point above the reference optimum's test error: every solver gets there.
_TARGET_ABOVE_REFERENCE = 0.01
# Below this relative suboptimality a change is noise, and a baseline of zero would make any noise
# a regression.
_SUBOPTIMALITY_FLOOR = 1e-3


def _cells(wanted=lambda solver: True):
    """Labels "task / solver" of what the solvers support that can be imported."""
    classes = importable()[0]
    return [
        f"{task.label} / {entry.label}"
        for task in _STUDY.task
        for entry in _STUDY.solver
        if entry.name in classes
        for solver in [classes[entry.name]]
        if wanted(solver)
        and (solver.supports_bias if task.fit_intercept else solver.supports_no_bias)
    ]


class Quickstart:
    params = (_cells(),)
    param_names = ("run",)
    timeout = 300
    # Six samples a side are the fewest with which asv can tell a difference from noise.
    rounds = 2
    repeat = (3, 3, 10.0)
    warmup_time = 0

    def setup_cache(self):
        return {f"{task} / {solver}": run for (task, solver), run in planned_runs(_STUDY).items()}

    def setup(self, runs, cell):
        self.run = runs[cell]
        if self.run.failure:
            raise RuntimeError(self.run.failure)
        self.estimator, self.data = estimator_and_data(self.run)
        # Compiles what is not compiled yet, outside the clock.
        self.estimator.fit(self.data.X_train, self.data.y_train)

    def time_fit(self, runs, cell):
        self.estimator.fit(self.data.X_train, self.data.y_train)

    def peakmem_fit(self, runs, cell):
        self.estimator.fit(self.data.X_train, self.data.y_train)

    def track_test_error(self, runs, cell):
        return 100 * self._finished().columns["test_error"]

    track_test_error.unit = "percent"

    def track_support_vectors(self, runs, cell):
        return self._finished().columns["n_support"]

    track_support_vectors.unit = "support vectors"

    def track_suboptimality(self, runs, cell):
        reference = self.run.reference.primal
        excess = (self._finished().columns["primal"] - reference) / reference
        return max(excess, _SUBOPTIMALITY_FLOOR)

    track_suboptimality.unit = "relative"

    def track_kernel_evals_to_target(self, runs, cell):
        target = self.run.reference.test_error + _TARGET_ABOVE_REFERENCE
        for checkpoint in self._finished().trace:
            if checkpoint.test_error <= target:
                return checkpoint.counters["kernel_evals"]
        raise RuntimeError(f"{cell} never reaches a test error of {100 * target:.2f} %")

    track_kernel_evals_to_target.unit = "kernel evaluations"

    def _finished(self):
        watched = watch(self.run)
        if watched.columns["status"] not in ("converged", "budget"):
            raise RuntimeError(f"{watched.columns['status']}: {watched.columns['reason']}")
        return watched


# A benchmark's own parameters replace those of its class: what has no value is not asked for.
Quickstart.track_suboptimality.params = [_cells(lambda solver: solver.scalarization is not None)]
Quickstart.track_kernel_evals_to_target.params = [_cells(lambda solver: solver.instrumented)]
