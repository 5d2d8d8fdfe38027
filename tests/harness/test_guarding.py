"""Executors around an executor."""

from marginbench.harness.execution.guarding import Meanwhile
from marginbench.harness.execution.jobs import Ended, Job, Limits, Outcome, Started, Waiting


class Scripted:
    """An executor whose events are known beforehand."""

    def __init__(self, events):
        self.events, self.closed = events, False

    def execute(self, jobs):
        return iter(self.events)

    def close(self):
        self.closed = True


def test_something_else_is_done_once_while_a_job_runs():
    job = Job("a", None, Limits({}, 1.0))
    outcome = Outcome("done")
    events = [Started(job), Waiting(), Waiting(), Ended(job, outcome)]
    done = []
    executor = Meanwhile(Scripted(events), lambda: done.append(len(seen)))
    seen = []
    for event in executor.execute(iter([job])):
        seen.append(event)
    assert seen == events
    # After the first job has started, and not again for later jobs.
    assert done == [1]
    list(executor.execute(iter([job])))
    assert done == [1]


def test_jobs_that_are_not_waited_for_leave_no_time_for_it():
    job = Job("a", None, Limits({}, 1.0))
    done = []
    executor = Meanwhile(
        Scripted([Started(job), Ended(job, Outcome("done"))]), lambda: done.append(1)
    )
    list(executor.execute(iter([job])))
    assert done == []
    executor.close()
