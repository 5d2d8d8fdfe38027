"""Solvers that break things, lie and do not end, for the tests beside this file.

Each harms in the way of its parameter ``how``. On the few points of the warm-up they behave.
"""

import contextlib
import ctypes
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
from sklearn.svm import SVC

from marginbench import MPLFP, SMO, Counters, DataError, hyperparameters
from marginbench.harness.errors import StorageError
from marginbench.solvers import LinearModel

#: What every process that is left behind has among its arguments.
LEFT = "import time; time.sleep(97531)"


class Cruel(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")


def _is_socket(descriptor):
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


class Harm:
    """Ways to do harm that any code has."""

    # ends otherwise than by returning

    def raises(self):
        raise ArithmeticError("step size is zero")

    def raises_an_interrupt(self):
        raise KeyboardInterrupt

    def raises_without_text(self):
        raise Cruel

    def raises_a_long_text_of_controls(self):
        raise ValueError("a\x00b\x1b[31mc\u202ed\u2066e\x07" + "x" * 5_000_000)

    def raises_out_of_memory(self):
        raise MemoryError("Unable to allocate 100 GiB")

    def blames_the_data(self):
        raise DataError("adult: cannot be fetched")

    def blames_the_disk(self):
        raise StorageError("/: No space left on device")

    def exits(self):
        sys.exit(0)

    def exits_at_once(self):
        os._exit(0)

    def segfaults(self):
        ctypes.string_at(0)

    def kills_its_guardian(self):
        subprocess.Popen([sys.executable, "-c", LEFT], start_new_session=True)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)

    # does not end

    def loops(self):
        while True:
            pass

    def hangs(self):
        time.sleep(97531)

    def ignores_signals_and_hangs(self):
        for number in range(1, 64):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
        self.hangs()

    # takes too much

    def eats(self):
        eaten = []
        while True:
            eaten.append(b"x" * 2**26)
            time.sleep(0.02)

    def has_a_child_that_eats(self):
        code = "import time; x = bytearray(900_000_000); time.sleep(60)"
        subprocess.run([sys.executable, "-c", code])

    # leaves something behind

    def leaves_a_daemon(self):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv(sys.executable, [sys.executable, "-c", LEFT])
            os._exit(0)
        time.sleep(0.3)

    def leaves_a_child_and_crashes(self):
        self.leaves_a_daemon()
        os.abort()

    def leaves_many(self):
        for _ in range(40):
            # Without what it could be known by: its environment.
            subprocess.Popen(["/bin/sleep", "97531"], env={}, start_new_session=True)

    def prints_much_and_leaves_threads(self):
        for _ in range(100):
            sys.stdout.write("x" * 2**20)
        for _ in range(3):
            threading.Thread(target=self.loops, daemon=True).start()

    # speaks to the parent

    def stops_within_a_message(self):
        sockets = [fd for fd in range(3, 256) if _is_socket(fd)]
        os.write(sockets[0], b'{"type": ')
        self.hangs()

    def closes_everything(self):
        os.closerange(0, 256)
        self.hangs()


@hyperparameters
class Hostile(SMO, Harm):
    """SMO that does harm when it has solved the problem."""

    how: str = ""

    def _solve(self, problem, monitor):
        if problem.n <= 50:
            return super()._solve(problem, monitor)
        self.problem, self.monitor = problem, monitor
        self.solution = super()._solve(problem, monitor)
        found = getattr(self, self.how)()
        return self.solution if found is None else found

    def hangs_in_one_pause(self):
        with self.monitor.paused():
            self.hangs()

    def hangs_in_its_predictions(self):
        self.decision_function = lambda X: self.hangs()

    # lies about what it found

    def expands(self, coef, **changes):
        """The solution with other coefficients."""
        return replace(self.solution, model=self.problem.expansion(coef), **changes)

    def changes_its_model(self, **changes):
        return replace(self.solution, model=replace(self.solution.model, **changes))

    def says_that_nothing_is_optimal(self):
        return self.expands(np.zeros(self.problem.n), status="converged")

    def is_infeasible(self):
        return self.expands(-self.problem.y)

    def inflates_n(self):
        found = self.expands(1e-6 * self.problem.y, status="converged")
        return replace(found, model=replace(found.model, n_train=10**9))

    def returns_few_coefficients(self):
        return self.expands(np.ones(3))

    def returns_weights(self):
        return replace(self.solution, model=LinearModel(np.ones(self.problem.X.shape[1])))

    def returns_nan(self):
        return self.changes_its_model(coef=self.solution.model.coef * np.nan)

    def predicts_otherwise(self):
        self.decision_function = lambda X: 1.01 * super(Hostile, self).decision_function(X)

    def predicts_with_objects(self):
        self.decision_function = lambda X: [object()] * X.shape[0]

    def has_an_odd_status(self):
        return replace(self.solution, status="optimal")

    def counts_too_far(self):
        return replace(self.solution, n_iter=10**30)

    def forgets_its_counters(self):
        self.problem.oracle.counters = Counters()
        self.problem.oracle.rows(np.arange(self.problem.n))

    def stops_counting(self):
        self.monitor.counters = None

    def says_nothing_of_its_end(self):
        self.monitor.finish = lambda n_iter, model: None

    def changes_its_data(self):
        self.problem.X[:] = 0.0

    def changes_its_labels(self):
        # The arrays that it has are not those that it is judged by.
        with contextlib.suppress(ValueError):
            self.problem.y.flags.writeable = True
        with contextlib.suppress(ValueError):
            self.problem.y *= -1


class HostileClassifier(SVC, Harm):
    """SVC that does harm when it has solved the problem."""

    def __init__(self, how="", gamma=1.0):
        super().__init__(gamma=gamma)
        self.how = how

    def fit(self, X, y):
        super().fit(X, y)
        if len(y) > 50:
            getattr(self, self.how)()
        return self


class HostileMethod(MPLFP, Harm):
    """MPLFP that does harm when it has solved the problem."""

    def __init__(self, *, tol=0.0, history=None, how=""):
        super().__init__(tol=tol, history=history)
        self.how = how

    def solve(self, problem, *, max_seconds=None):
        result = super().solve(problem, max_seconds=max_seconds)
        if problem.n <= 50:
            return self.hangs() if self.how == "hangs_as_it_is_warmed_up" else result
        self.result = result
        found = getattr(self, self.how)()
        return result if found is None else found

    def returns_a_long_point(self):
        return replace(self.result, x=np.ones(7))

    def has_an_endless_history(self):
        return replace(self.result, history=self.result.history[-1:] * 100_000)

    def counts_too_far_in_its_history(self):
        last = self.result.history[-1]._replace(matvecs=2**70)
        return replace(self.result, history=(last,))

    def takes_less_than_no_time(self):
        return replace(self.result, seconds=-100.0)
