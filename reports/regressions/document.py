"""What changed between two commits, as JSON: stable order, finite numbers or null."""

from __future__ import annotations

import json
import math
from typing import Any

from . import words
from .repository import Commit
from .values import Snapshot
from .verdicts import CellVerdict, Change
from .words import Pair

#: Raised when a key changes its meaning or goes.
SCHEMA_VERSION = 1


def as_json(pair: Pair) -> str:
    """The document; the same comparison gives the same text."""
    return json.dumps(document(pair), indent=2, ensure_ascii=False, allow_nan=False)


def document(pair: Pair) -> dict[str, Any]:
    """The comparison as plain values."""
    comparison = pair.comparison
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": words.gate_words(comparison),
        "exit_code": comparison.exit_code,
        "summary": words.headline(comparison),
        "base": _side(pair.base, comparison.before),
        "head": _side(pair.head, comparison.after),
        "counts": dict(comparison.counts),
        "cells": [
            _cell(each, pair.head) for each in comparison.cells if each.verdict != "unchanged"
        ],
        "times": [
            _change(change)
            for each in comparison.cells
            for change in each.changes
            if change.outcome == "advice"
        ],
        "notes": [*pair.notes, *words.notes(comparison)],
    }


def _side(commit: Commit, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "commit": commit.hash,
        "subject": commit.subject,
        "date": commit.date,
        "environment": snapshot.lane.environment,
        "machine": dict(snapshot.machine),
    }


def _cell(each: CellVerdict, head: Commit) -> dict[str, Any]:
    return {
        "suite": each.cell.suite,
        "cell": each.cell.name,
        "solver": each.cell.group,
        "verdict": each.verdict,
        "refused": each.refused,
        "known": each.accepted.why if each.accepted else None,
        "changes": [_change(change) for change in each.changes if change.outcome != "advice"],
        "reproduce": words.reproduce(each.cell, head),
    }


def _change(change: Change) -> dict[str, Any]:
    estimate = change.estimate
    return {
        "suite": change.key.cell.suite,
        "cell": change.key.cell.name,
        "measure": change.key.measure,
        "before": change.before,
        "after": change.after,
        "ratio": _finite(change.ratio),
        "outcome": change.outcome,
        "times_its_bound": _finite(change.significance),
        "known": change.accepted.why if change.accepted else None,
        "estimate": None
        if estimate is None
        else {
            "ratio": _finite(estimate.ratio),
            "low": _finite(estimate.low),
            "high": _finite(estimate.high),
            "samples": list(estimate.n),
        },
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
