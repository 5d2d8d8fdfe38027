"""Solvers that lie, cheat, break things and do not end, for the tests beside this file.

Each is a method of :class:`Hostile` (or of :class:`HostileMethod` for feasibility), chosen by the
parameter ``how``. On the few points of the warm-up they behave.
"""

import contextlib
import ctypes
import gc
import json
import mmap
import os
import pickle
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np

from marginbench import MPKFP, MPLFP, SMO, Counters, KernelExpansion, Solution, hyperparameters

#: What every process that is left behind has among its arguments.
LEFT = "import time; time.sleep(97531)"


def burn(seconds):
    """Use so much CPU time."""
    ends = time.thread_time() + seconds
    while time.thread_time() < ends:
        pass


def connection():
    """The socket to the parent, found as an attacker would."""
    for found in gc.get_objects():
        if isinstance(found, socket.socket) and found.fileno() >= 0:
            return found
    raise LookupError("no socket")


def frame(text, data=b"", magic=b"mbf1"):
    return struct.pack("<4sIQ", magic, len(text), len(data)) + text + data


def message(**fields):
    return frame(json.dumps(fields).encode())


class Forged:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


class Cruel(Exception):
    def __str__(self):
        raise RuntimeError("no text for you")


@hyperparameters
class Hostile(SMO):
    """SMO that does harm when it has solved the problem."""

    how: str = ""
    folder: str = ""
    hidden: float = 0.0

    def _solve(self, problem, monitor):
        if problem.n <= 50:
            return super()._solve(problem, monitor)
        self.problem, self.monitor = problem, monitor
        self.solution = super()._solve(problem, monitor)
        found = getattr(self, self.how)()
        return self.solution if found is None else found

    # ends otherwise than by returning

    def raises(self):
        raise ArithmeticError("step size is zero")

    def raises_a_base_exception(self):
        raise type("Odd", (BaseException,), {})("odd")

    def raises_an_interrupt(self):
        raise KeyboardInterrupt

    def raises_without_text(self):
        raise Cruel

    def raises_a_long_text(self):
        raise ValueError("x" * 5_000_000)

    def raises_control_characters(self):
        raise ValueError("a\x00b\x1b[31mc\u202ed\u2066e\x07")

    def raises_out_of_memory(self):
        raise MemoryError("Unable to allocate 100 GiB")

    def blames_the_data(self):
        from marginbench.data_loaders import DataError

        raise DataError("adult: cannot be fetched")

    def exits(self):
        sys.exit(0)

    def exits_at_once(self):
        os._exit(0)

    def aborts(self):
        os.abort()

    def segfaults(self):
        ctypes.string_at(0)

    def kills_itself(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def kills_its_guardian(self):
        subprocess.Popen([sys.executable, "-c", LEFT], start_new_session=True)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)

    def stops_itself(self):
        os.kill(os.getpid(), signal.SIGSTOP)

    # does not end

    def loops(self):
        while True:
            pass

    def sleeps(self):
        time.sleep(10_000)

    def loops_in_pauses(self):
        while True:
            with self.monitor.paused():
                pass

    def loops_in_one_pause(self):
        with self.monitor.paused():
            self.loops()

    def loops_in_a_snapshot(self):
        self.monitor.record(1, self.loops)

    def loops_in_its_predictions(self):
        self.decision_function = lambda X: self.loops()

    def waits_for_a_lock(self):
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()

    def ignores_signals_and_loops(self):
        for number in range(1, 64):
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
        self.loops()

    # takes too much

    def eats(self):
        eaten = []
        while True:
            populate = getattr(mmap, "MAP_POPULATE", 0)
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | populate
            eaten.append(mmap.mmap(-1, 2**26, flags=flags))
            eaten[-1][::4096] = bytes(2**14)
            time.sleep(0.02)

    def has_a_child_that_eats(self):
        code = "import time; x = bytearray(1_500_000_000); time.sleep(60)"
        subprocess.run([sys.executable, "-c", code])

    def prints_much(self):
        for _ in range(100):
            sys.stdout.write("x" * 2**20)

    # leaves something behind

    def leaves_a_child(self):
        subprocess.Popen([sys.executable, "-c", LEFT])

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

    def leaves_a_child_without_environment(self):
        subprocess.Popen([sys.executable, "-c", LEFT], env={}, start_new_session=True)

    def leaves_many(self):
        for _ in range(40):
            subprocess.Popen(["/bin/sleep", "97531"], start_new_session=True)

    def leaves_threads(self):
        for _ in range(3):
            threading.Thread(target=self.loops, daemon=True).start()

    def leaves_its_settings(self):
        np.seterr(divide="raise")
        sys.setrecursionlimit(80)
        os.chdir("/")
        os.umask(0o777)
        os.environ["OMP_NUM_THREADS"] = "64"

    # speaks to the parent

    def sends_garbage(self):
        connection().sendall(bytes(range(256)) * 100)
        self.loops()

    def sends_a_pickle(self):
        path = os.path.join(self.folder, "forged")
        connection().sendall(pickle.dumps(Forged(path)))
        connection().sendall(frame(pickle.dumps(Forged(path))))
        self.loops()

    def sends_half_a_message(self):
        connection().sendall(message(type="phase", phase="solve", solve_s=0.0)[:-3])
        self.loops()

    def sends_a_long_header(self):
        connection().sendall(struct.pack("<4sIQ", b"mbf1", 2**31, 2**62))
        self.loops()

    def sends_deep_json(self):
        connection().sendall(frame(b'{"type": ' + b"[" * 20_000 + b"]" * 20_000 + b"}"))
        self.loops()

    def sends_an_odd_array(self):
        odd = {"$array": {"type": "|O8", "shape": [1]}}
        connection().sendall(message(type="snapshot", state={"model": odd}, wall_s=0, cpu_s=0))
        self.loops()

    def sends_a_judgement(self):
        columns = {"n_iter": 1, "wall_s": 0.0, "test_error": 0.0}
        connection().sendall(message(type="checkpoint", columns=columns))
        self.loops()

    def sends_a_result(self):
        value = {"status": "converged", "test_error": 0.0, "wall_s": 0.0}
        connection().sendall(message(type="result", value=value, error="", kind="", traceback=""))
        self.loops()

    def sends_claims_without_a_model(self):
        value = {"status": "converged", "reason": "", "scores": [1.0] * 100, "epochs": "[]"}
        connection().sendall(message(type="result", value=value, error="", kind="", traceback=""))
        self.loops()

    def sends_an_earlier_phase(self):
        connection().sendall(message(type="phase", phase="data", solve_s=0.0))
        self.loops()

    def sends_odd_times(self):
        connection().sendall(message(type="phase", phase="evaluate", solve_s=-1e300))
        self.loops()

    def floods(self):
        flood = message(type="phase", phase="evaluate", solve_s=0.0)
        flood += message(type="phase", phase="solve", solve_s=0.0)
        pipe = connection()
        while True:
            pipe.sendall(flood * 50)

    def hangs_up(self):
        os.close(connection().fileno())
        self.loops()

    def closes_everything(self):
        os.closerange(0, 256)
        self.loops()

    def sends_long_texts(self):
        pipe = connection()
        while True:
            pipe.sendall(frame(b'{"type": ' + b" " * 2**20 + b'"phase"}'))
            pipe.recv(1)

    def blames_the_disk(self):
        from marginbench.harness.errors import StorageError

        raise StorageError("/: No space left on device")

    def replaces_its_spool(self):
        logs = os.path.dirname(os.readlink("/proc/self/fd/1"))
        for name in os.listdir(logs):
            if name.endswith(".models"):
                os.unlink(os.path.join(logs, name))
                os.mkfifo(os.path.join(logs, name))

    def replaces_its_log(self):
        log = os.readlink("/proc/self/fd/1")
        os.unlink(log)
        os.mkfifo(log)
        os.abort()

    # lies about what it found

    def patches_the_mean(self):
        np.mean = lambda *values, **options: 0.0

    def patches_the_evaluator(self):
        from marginbench.harness.evaluation import models as evaluation

        perfect = evaluation.Evaluation(0.0, 0.0, 1, 0.0, 0.0, 0.0, 0.0)
        evaluation.Evaluator.evaluate = lambda *given: perfect
        evaluation.Evaluator._evaluate = lambda *given: perfect

    def says_converged_too_early(self):
        coef = 0.05 * self.problem.y
        return Solution(self.problem.expansion(coef), self.solution.n_iter, "converged")

    def says_that_its_tolerance_is_large(self):
        self.get_params = lambda deep=True: {"tol": 1e9}
        type(self).certificate = None
        return self.says_converged_too_early()

    def predicts_otherwise(self):
        self.decision_function = lambda X: np.ones(X.shape[0])

    def predicts_with_objects(self):
        self.decision_function = lambda X: [object()] * X.shape[0]

    def has_an_odd_status(self):
        return replace(self.solution, status="optimal")

    def returns_nan(self):
        model = replace(self.solution.model, coef=self.solution.model.coef * np.nan)
        return replace(self.solution, model=model)

    def returns_objects(self):
        model = replace(self.solution.model, coef=self.solution.model.coef.astype(object))
        return replace(self.solution, model=model)

    def returns_no_model(self):
        return replace(self.solution, model="a model")

    def returns_points_of_its_own(self):
        model = self.solution.model
        changed = KernelExpansion(
            model.kernel, model.points, model.coef, 0.0, model.support + 10**6, model.n_train
        )
        return replace(self.solution, model=changed)

    def counts_backwards(self):
        self.monitor.record(self.solution.n_iter, lambda: self.solution.model)
        self.problem.counters.kernel_evals = 10

    def forgets_its_counters(self):
        self.problem.oracle.counters = Counters()
        self.problem.oracle.rows(np.arange(self.problem.n))

    def forgets_what_it_has_said(self):
        from marginbench.harness.evaluation.tracing import Served

        self.monitor.record(10**6, lambda: self.solution.model)
        self.monitor.last, self.monitor._served = None, Served()
        self.problem.counters.kernel_evals = self.problem.counters.kernel_evals_computed = 1

    def stops_counting(self):
        self.monitor.counters = None

    def counts_less_than_nothing(self):
        self.problem.counters.inner_products = -1

    def iterates_too_often(self):
        return replace(self.solution, n_iter=10**30)

    def says_nothing_of_its_end(self):
        self.monitor.finish = lambda n_iter, model: None

    def changes_its_labels(self):
        # The arrays that it has are not those that it is judged by.
        with contextlib.suppress(ValueError):
            self.problem.y.flags.writeable = True
        with contextlib.suppress(ValueError):
            self.problem.y *= -1

    # hides its time

    def patches_the_clocks(self):
        burn(self.hidden)
        for name in ("perf_counter", "process_time", "time", "monotonic"):
            setattr(time, name, lambda: 0.0)
        from marginbench.harness.evaluation import tracing

        tracing.perf_counter = tracing.process_time = lambda: 0.0
        self.monitor.clocks._wall = self.monitor.clocks._cpu = 0.0
        self.monitor.clocks.wall_s = self.monitor.clocks.cpu_s = 0.0

    def works_in_a_pause(self):
        with self.monitor.paused():
            burn(self.hidden)

    def works_in_a_snapshot(self):
        def build():
            burn(self.hidden)
            return self.solution.model

        self.monitor.record(self.solution.n_iter, build)

    def starts_its_clocks_again(self):
        burn(self.hidden)
        self.monitor.start(self.problem.counters)

    def lets_children_work_that_nobody_is_charged_for(self):
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        pid = os.fork()
        if pid == 0:
            burn(4 * self.hidden)
            os._exit(0)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def lets_a_child_work(self):
        pid = os.fork()
        if pid == 0:
            burn(self.hidden)
            os._exit(0)
        with self.monitor.paused():
            os.waitpid(pid, 0)


class HostileMethod(MPLFP):
    """MPLFP that does harm when it has solved the problem."""

    def __init__(self, *, tol=0.0, history=None, how="", hidden=0.0):
        super().__init__(tol=tol, history=history)
        self.how, self.hidden = how, hidden
        if how == "sends_a_result_before_it_solves":
            self.sends_a_perfect_result()

    def solve(self, problem, *, max_seconds=None):
        result = super().solve(problem, max_seconds=max_seconds)
        if problem.n <= 50:
            return result
        self.result = result
        found = getattr(self, self.how)()
        return result if found is None else found

    def raises(self):
        raise ArithmeticError("step size is zero")

    def loops(self):
        while True:
            pass

    def turns_its_separator_round(self):
        return replace(self.result, y=-self.result.y)

    def says_that_nothing_separates(self):
        return replace(self.result, status="inseparable", tol=1e9)

    def has_an_odd_status(self):
        return replace(self.result, status="proven")

    def returns_a_long_point(self):
        return replace(self.result, x=np.ones(7))

    def returns_objects(self):
        return replace(self.result, y=self.result.y.astype(object))

    def returns_nan(self):
        return replace(self.result, y=self.result.y * np.nan)

    def reports_other_bounds(self):
        return replace(self.result, phi_lo=1.0)

    def patches_the_check(self):
        from marginbench.harness.evaluation import cells
        from marginbench.solvers.feasibility.checking import Verdict

        cells.check_certificate = lambda *given: Verdict(True, (), 1.0, 1.0)
        return self.turns_its_separator_round()

    def works_for_nothing(self):
        burn(self.hidden)
        return replace(self.result, seconds=1e-6)

    def sends_a_result(self):
        value = {"status": "converged", "phi_lo": 1.0}
        connection().sendall(message(type="result", value=value, error="", kind="", traceback=""))
        self.loops()

    def has_an_endless_history(self):
        return replace(self.result, history=self.result.history[-1:] * 100_000)

    def counts_too_far_in_its_history(self):
        last = self.result.history[-1]._replace(matvecs=2**70)
        return replace(self.result, history=(last,))

    def takes_less_than_no_time(self):
        return replace(self.result, seconds=-100.0)

    def sends_a_perfect_result(self):
        y, x = np.eye(8)[0].tolist(), np.eye(100)[0].tolist()
        value = {
            "status": "separable", "y": y, "x": x, "phi_lo": 1.0, "phi_up": 1.0, "n_iter": 1,
            "converged": True, "tol": 0.0, "message": "", "counters": {}, "history": [],
            "wall_s": 0.0, "cpu_s": 0.0, "data_s": 0.0, "compile_s": 0.0,
        }  # fmt: skip
        connection().sendall(message(type="result", value=value, error="", kind="", traceback=""))
        time.sleep(60)


class HostileKernelMethod(MPKFP):
    """MPKFP whose predictor is not what it says."""

    def _iterate(self, space, progress):
        result = super()._iterate(space, progress)
        return replace(result, y=np.nan * result.y)
