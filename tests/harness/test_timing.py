"""Two clocks: the one of the solver's process counts if the one outside explains it."""

from __future__ import annotations

from marginbench.harness.evaluation.timing import agreed_times
from marginbench.harness.execution.jobs import Stamp


def stamps(*times: float) -> list[Stamp]:
    return [Stamp(time, time) for time in times]


def test_clocks_that_agree_but_for_sending_are_believed() -> None:
    own = stamps(0.1, 0.5, 1.0)
    assert agreed_times(own, stamps(0.102, 0.505, 1.08)) == (own, "")
    # A large model takes long to send.
    assert agreed_times(stamps(1.0), [Stamp(3.0, 3.0, sent=10**9)])[0] == stamps(1.0)


def test_more_than_passed_outside_is_not_believed() -> None:
    assert agreed_times(stamps(5.0), stamps(1.0)) == (stamps(1.0), "")


def test_work_that_the_clocks_left_out_counts_for_every_state() -> None:
    seen = stamps(0.1, 2.0, 3.0)
    times, note = agreed_times(stamps(0.1, 0.1, 0.2), seen)
    assert times == seen
    assert note == (
        "the solver's own clocks say 0.2 s and 0.2 CPU seconds; recorded is what passed outside, "
        "3 s and 3 CPU seconds"
    )


def test_cpu_seconds_alone_are_held_against_those_outside() -> None:
    own, seen = [Stamp(1.0, 0.1)], [Stamp(1.0, 0.9)]
    assert agreed_times(own, seen)[0] == seen


def test_a_small_difference_is_taken_from_outside_without_a_word() -> None:
    seen = stamps(0.2)
    assert agreed_times(stamps(0.15), seen) == (seen, "")


def test_clocks_that_run_backwards_are_not_believed() -> None:
    seen = stamps(1.0, 1.02)
    assert agreed_times(stamps(1.0, 0.99), seen)[0] == seen


def test_delays_of_a_busy_machine_are_nobodys_work() -> None:
    own = [Stamp(0.1, 0.1)]
    assert agreed_times(own, [Stamp(0.6, 0.1, delay_s=0.45)]) == (own, "")
    # They excuse no CPU time.
    seen = [Stamp(0.6, 0.5, delay_s=0.45)]
    assert agreed_times(own, seen)[0] == seen
