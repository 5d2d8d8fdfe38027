"""A comparison as JSON, described in docs/comparing.md: stable order, finite numbers or null."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..frames import records
from . import pairing, words

if TYPE_CHECKING:
    from .comparing import Side
    from .result import Comparison

#: Raised when a key changes its meaning or goes.
SCHEMA_VERSION = 1


def as_json(comparison: Comparison) -> str:
    """The document; the same comparison gives the same text."""
    return json.dumps(document(comparison), indent=2, ensure_ascii=False, allow_nan=False)


def document(comparison: Comparison) -> dict[str, Any]:
    """The comparison as plain values."""
    pairs = comparison.pairs
    left_out = pairs[pairs["outcome"] != pairing.COMPARED]
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": comparison.verdict,
        "exit_code": comparison.exit_code,
        "summary": words.headline(comparison),
        "a": _side(comparison.before),
        "b": _side(comparison.after),
        "notes": words.notes(comparison),
        "times_judged": not comparison.times,
        "n_compared": comparison.n_compared,
        "n_failed_in_b_only": comparison.n_newly_failed,
        "n_missing_in_b_only": comparison.n_newly_missing,
        "n_beyond": comparison.n_beyond,
        "measures": [
            {"measure": name, "title": item.measure.title, "bound": plain(item.bound)}
            | {"band": item.band, "scale": "difference" if item.is_error else "ratio"}
            for name, item in comparison.measures.items()
        ],
        "solvers": _rows(comparison.solvers),
        "cells": _rows(comparison.cells),
        "values": _rows(comparison.frame),
        "not_compared": _rows(left_out.drop(columns=["seed_a", "seed_b", "same_reference"])),
        "environment": [asdict(item) for item in comparison.environment],
        "code": [asdict(item) for item in comparison.code],
    }


def _side(side: Side) -> dict[str, Any]:
    study = side.results.study
    return {
        "folder": str(side.results.folder),
        "study": study.name,
        "solver": side.solver or None,
        "marginbench": study.marginbench,
        "n_runs": len(side.results.runs),
    }


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    return [{name: plain(value) for name, value in row.items()} for row in records(frame)]


def plain(value: Any) -> Any:
    """A value as JSON knows it; what is not finite is null."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
