"""Verdicts: what is printed against what was measured, computed from records each time."""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .. import formatting
from ..errors import ReportError
from ..formatting import plural
from .published import Paper, Row, Source, filled, translated
from .quantities import Estimate, Unmeasured, measured

REPRODUCED, ELSEWHERE = "reproduced", "reproduced in other conditions"
FAILED, OPEN = "not reproduced", "undecided"
NOT_RUN, INCOMPARABLE = "not run", "not comparable"
MINUS = "\N{MINUS SIGN}"
#: From the best to no verdict at all: a sign, so that colour is not all that tells them apart, and
#: the meaning.
VERDICTS: Mapping[str, tuple[str, str]] = {
    REPRODUCED: ("✓", "the whole 95 % interval agrees with what is printed"),
    ELSEWHERE: ("≈", "the same, of other data, sizes or limits, which the row names"),
    FAILED: ("✗", "no part of the interval agrees"),
    OPEN: ("?", "a part of the interval agrees; more seeds would tell"),
    NOT_RUN: (formatting.DASH, "no record, and why"),
    INCOMPARABLE: ("∅", "seconds of another machine; ratios of times have rows of their own"),
}
#: The name of a row in an explanation.
QUOTED = re.compile("{(.*?)}")


@dataclass(frozen=True)
class Verdict:
    """The verdict on a row."""

    row: Row
    verdict: str  # one of VERDICTS
    estimate: Estimate | None = None  # in the row's unit
    # In which other conditions; what explains a difference; why there is no value.
    words: str = ""
    study: str = ""  # whose records it is from, or those that would tell
    command: str = ""  # what makes the records of this row alone
    explained: bool = False  # whether the explanation rests on measured values of ours


def judged(row: Row, estimate: Estimate, source: Source) -> tuple[str, str]:
    """The verdict on an estimate in the row's unit, and words.

    Reproduced: the whole interval agrees with what is printed. Not reproduced: none of it does.
    Undecided: some of it does, and more seeds would tell, or all of it does, but runs failed. One
    run is enough against a claim about every run.
    """
    if row.is_time:
        return INCOMPARABLE, "seconds of another machine; other rows compare ratios of times"
    low, high = row.band
    # A tolerance includes its ends, a claim does not include its bound.
    ends = [
        (low < end or low == -math.inf) and (end < high or high == math.inf)
        if row.is_bounded
        else low <= end <= high
        for end in (estimate.low, estimate.high)
    ]
    if all(ends) and not estimate.failed:
        return (ELSEWHERE, source.differs) if source.differs else (REPRODUCED, "")
    verdict = OPEN
    refuted = row.every and math.isfinite(estimate.low)
    if all(ends):
        why = f"{plural(estimate.failed, 'run')} failed, and have no value"
    elif refuted or (not any(ends) and not estimate.low < low <= high < estimate.high):
        verdict, why = FAILED, ""
    else:
        why = "one seed has no interval" if estimate.n == 1 else "the interval is on both sides"
    return verdict, "; ".join(filter(None, (why, source.differs, row.explanation)))


def verdict(paper: Paper, row: Row, folders: Mapping[str, Path]) -> Verdict:
    """The verdict on a row, from the first of the paper's sources with records of it.

    ``folders`` are the results folders by the name of their study.
    """
    reasons, study, command = list[str](), "", ""
    for source in paper.sources if row.measure else ():
        if paper.pairs(source, row) is None:
            continue
        study, command = source.study, _command(paper, row, source)
        labels = {side: translated(source, *side) for side in row.sides}
        try:
            if study not in folders:
                raise Unmeasured(f"{study} has not been run")
            estimate = measured(row, labels, folders[study])
        except (Unmeasured, ReportError) as error:
            reasons.append(str(error))
            continue
        word, words = judged(row, estimate, source)
        return Verdict(row, word, estimate, words, study, command)
    if row.is_time:
        return Verdict(row, INCOMPARABLE, words="seconds of another machine")
    why = row.not_run or "; ".join(dict.fromkeys(reasons)) or "no study has it"
    return Verdict(row, NOT_RUN, None, why, study, command)


def _command(paper: Paper, row: Row, source: Source) -> str:
    """What makes the records of a row alone: at the small scale if its study has the row there."""
    words = ["marginbench", "reproduce", paper.name, "--only", row.id]
    fitting = (each for each in paper.sources if each.study == source.study)
    small = any(each.scale == "small" and paper.pairs(each, row) for each in fitting)
    return shlex.join([*words, *([] if small else ["--scale", "full"])])


def verdicts(paper: Paper, folders: Mapping[str, Path]) -> dict[str, Verdict]:
    """The verdict on each row of a paper, by its name; words name our values of other rows."""
    by_id = {row.id: verdict(paper, row, folders) for row in paper.rows}
    values = {name: shown(each) or each.verdict for name, each in by_id.items()}
    quoted = {name: set(QUOTED.findall(each.row.explanation)) for name, each in by_id.items()}
    return {
        name: replace(
            each,
            words=filled(each.words, values),
            # By other rows: its own value explains nothing.
            explained=bool(quoted[name] - {name})
            and all(by_id[other].estimate for other in quoted[name]),
        )
        for name, each in by_id.items()
    }


def counts(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """How many rows of the paper have each verdict; those that none has are left out."""
    counted = Counter(each.verdict for each in verdicts if not each.row.is_ours)
    return {name: counted[name] for name in VERDICTS if counted[name]}


def answered(verdicts: Iterable[Verdict]) -> tuple[int, int]:
    """How many of the paper's rows that were run are reproduced or explained, and how many were."""
    good = (REPRODUCED, ELSEWHERE)
    run = [each for each in verdicts if each.verdict in (*good, FAILED, OPEN)]
    answers = [each.explained or each.verdict in good for each in run if not each.row.is_ours]
    return sum(answers), len(answers)


def counts_words(verdicts: Sequence[Verdict]) -> str:
    """The same in a sentence."""
    counted = counts(verdicts)
    if not counted:
        return "no row of the paper"
    listed = ", ".join(f"{n} {name}" for name, n in counted.items())
    good, run = answered(verdicts)
    words = f"; {good} of the {run} that were run are reproduced or explained" if run else ""
    return f"{plural(sum(counted.values()), 'row')}: {listed}{words}"


def shown(verdict: Verdict, *, interval: bool = False) -> str:
    """Our value in the printed unit, with its interval and number of runs if ``interval``."""
    estimate = verdict.estimate
    if estimate is None:
        return ""
    row = verdict.row
    unit = formatting.TIMES if row.by == "ratio" else f" {row.unit}".removesuffix(" ratio").rstrip()
    text = f"{number(estimate.value)}{unit}"
    if not interval:
        expected = "" if row.expected is None else f", printed {number(row.expected)}{unit}"
        return f"{text}{expected}"
    words = "sizes" if row.by == "slope" else "runs" if estimate.n > 1 else "run"
    interval_words = f" [{number(estimate.low)}, {number(estimate.high)}]"
    if estimate.low == estimate.high:
        interval_words = ""
    elif estimate.low == -math.inf and estimate.high == math.inf:
        return f"{text} (no interval, {estimate.n} {words})"
    return f"{text}{interval_words} ({estimate.n} {words})"


def number(value: float) -> str:
    """A number of any size to at least four digits: 0.000634 is "6.34e-4"."""
    if math.isinf(value):
        return f"{MINUS}∞" if value < 0 else "∞"
    if abs(value) < 1e7 and (abs(value) >= 1e3 or value == round(value)):
        text = f"{value:,.0f}"
    elif 1e-3 <= abs(value) < 1e3:
        text = f"{value:.4g}"
    else:
        mantissa, exponent = f"{value:.3g}".partition("e")[::2]
        if not exponent:
            mantissa, exponent = f"{value:.2e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    return f"{MINUS}{text[1:]}" if text.startswith("-") else text
