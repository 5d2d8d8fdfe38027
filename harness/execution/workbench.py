"""A study's runs in this very process, for tests and tools that bring their own isolation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..jobs import Ended, Event, Job, Outcome, ResultMessage, Started, decoded, encoded


class InProcess:
    """An executor without isolation or limits: what a job raises goes to the caller."""

    def execute(self, jobs: Iterator[Job]) -> Iterator[Event]:
        """Run the jobs one after the other."""
        for job in jobs:
            yield Started(job)
            result = encoded(ResultMessage(job.work.run(lambda message: None)))
            returned: Any = decoded(result, job.work)
            yield Ended(job, Outcome("done", value=returned.value))

    def close(self) -> None:
        """Nothing is held."""
