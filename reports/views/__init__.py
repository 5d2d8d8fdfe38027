"""The pages of studies: for each kind one list of sections, which all renderers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

from ..analysis import once
from ..results import Results
from ..view import Section
from . import across, common, feasibility, findings, grid, scaling, svm

#: The sections of a page in their order; each function gives those that the study has.
PAGES: Mapping[str, Sequence[Callable[[Results], Iterator[Section]]]] = MappingProxyType(
    {
        "svm": (
            findings.findings_section,
            findings.overview_section,
            findings.targets_section,
            across.across_section,
            grid.grid_section,
            scaling.scaling_section,
            common.explore_section,
            svm.task_sections,
            common.failures_section,
            common.skipped_section,
            svm.protocol_section,
            svm.data_section,
            common.solvers_section,
            common.environment_section,
            common.reproduce_section,
            common.definitions_section,
        ),
        "feasibility": (
            feasibility.findings_section,
            feasibility.figures_section,
            common.explore_section,
            feasibility.task_sections,
            common.failures_section,
            common.skipped_section,
            feasibility.protocol_section,
            common.solvers_section,
            common.environment_section,
            common.reproduce_section,
            common.definitions_section,
        ),
    }
)


@once
def sections(results: Results) -> list[Section]:
    """The sections of a study's page in their order."""
    return [section for make in PAGES[results.kind] for section in make(results)]
