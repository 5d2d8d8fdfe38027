"""Stand-ins for workers that answer at once, and for what shows a user how it goes."""

from dataclasses import replace

from marginbench.data_loaders import DataError
from marginbench.harness.errors import ReferenceFailure, first_line
from marginbench.harness.evaluation.svm import ReferenceInfo, ReferenceWork
from marginbench.harness.execution.progress import Progress
from marginbench.harness.jobs import Ended, Outcome, Started, decoded, encoded
from marginbench.harness.planning.preflight import DatasetInfo, DatasetWork, DescribeWork

DATA = DatasetInfo("f" * 64, 100, 50, 3, False, 2, "cite", "CC0")
REFERENCE = ReferenceInfo(10.0, 9.999, 0.001, 0.05, 7, 0.25, "r" * 64)
COUNTERS = {"kernel_evals": 100}
FIT = {"status": "converged", "n_iter": 5, "counters": COUNTERS, "wall_s": 0.5, "primal": 10.5}
GOOD = Outcome("done", FIT | {"test_error": 0.1})


class InProcess:
    """An executor without isolation or limits: what a job raises goes to the caller."""

    def execute(self, jobs):
        for job in jobs:
            yield Started(job)
            result = encoded({"value": job.work.run(lambda message: None)})
            yield Ended(job, Outcome("done", value=decoded(result, job.work)["value"]))

    def close(self):
        pass


class FakeExecutor:
    """Answers every job at once.

    ``outcomes`` maps a solver's name to how its runs end; ``data`` is what loading answers, and
    ``reference`` what the optimum is.
    """

    def __init__(self, data=None, **outcomes):
        self.outcomes = outcomes
        self.data = data or Outcome("done", DATA)
        self.reference = Outcome("done", REFERENCE)
        self.ran = []
        self.closed = False

    def execute(self, jobs):
        for job in jobs:
            yield Started(job)
            yield Ended(job, replace(self.answer(job)))

    def answer(self, job):
        if isinstance(job.work, DatasetWork):
            return self.data
        if isinstance(job.work, DescribeWork):
            return Outcome("done", job.work.run(lambda message: None))
        if isinstance(job.work, ReferenceWork):
            return self.reference
        self.ran.append(job)
        return self.outcomes.get(job.work.solver, GOOD)

    def close(self):
        self.closed = True


class Lenient(InProcess):
    """Does all in this process, keeps its jobs, and reports what fails as workers do."""

    def __init__(self):
        self.asked = []

    @property
    def runs(self):
        """How many runs it was asked for: their tags are keys."""
        return sum(len(job.tag) == 64 for job in self.asked)

    def execute(self, jobs):
        for job in jobs:
            self.asked.append(job)
            try:
                yield from super().execute(iter([job]))
            except DataError as error:
                yield Ended(job, Outcome("data", reason=str(error)))
            except (ArithmeticError, ReferenceFailure) as error:
                yield Ended(job, Outcome("failed", reason=first_line(error), phase="solve"))


def carried_out(work):
    """The columns of a run in this process, its checkpoints, and its phases."""
    messages = []
    found = work.run(messages.append)
    trace = [item["checkpoint"] for item in messages if "checkpoint" in item]
    return found, trace, [item["phase"] for item in messages if "phase" in item]


class Told(Progress):
    """Keeps what is said."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def say(self, line):
        self.lines.append(line)
