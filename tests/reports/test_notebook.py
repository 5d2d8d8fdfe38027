"""Results in Python: data frames, the summary, and what a notebook shows."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import marginbench
from marginbench.harness.errors import StudyError
from marginbench.harness.study.toml import load_study, parse_study, study_names
from marginbench.reports.errors import ReportError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
STUDY = {
    "name": "small",
    "seeds": 1,
    "task": [{"dataset": "checkers", "dataset_params": {"n_train": 100}, "reference": False}],
    "solver": [{"name": "smo"}],
}


def test_the_summary_has_medians_ranges_and_numbers(make, write_results, tmp_path):
    records = [
        make.finished("a", "SMO", seed, make.trace([1e3, 1e4], [0.3, error]), n_iter=5)
        for seed, error in enumerate([0.1, 0.2, 0.6])
    ]
    records.append(make.record("a", "<b>", 0, status="crashed", reason="signal 11"))
    results = marginbench.load_results(str(write_results(records)))
    summary = results.summary()
    assert list(summary.index) == [("a", "SMO"), ("a", "<b>")]
    assert summary["train_error"].loc[("a", "SMO")].tolist() == [0.1, 0.05, 0.3, 3]
    # Beside the median test error stands the interval of the mean.
    test = summary["test_error"].loc[("a", "SMO")]
    assert (test["median"], test["n"]) == (0.2, 3)
    assert test["low"] < 0.1 < 0.6 < test["high"]
    failed = summary.loc[("a", "<b>"), "test_error"]
    assert pd.isna(failed["median"])
    assert failed["n"] == 0
    assert summary["evaluations", "median"].loc[("a", "SMO")] == 1e4
    # What a notebook shows is short or escaped.
    assert re.fullmatch(r"StudyResults\('.*': 4 runs, 3 with a result\)", repr(results))
    html = results._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html
    assert "<td>3 / 3</td>" in html
    assert "<td>0 / 1</td>" in html
    assert html.count("20.00") == 1
    with pytest.raises(ReportError, match="which did not store the study; run the study again"):
        results.study
    with pytest.raises(ReportError, match="not a results folder"):
        marginbench.load_results(tmp_path / "none")


def test_a_study_that_is_written_and_read_is_the_same_whatever_its_values(tmp_path):
    for name in study_names():
        shipped = load_study(name)
        assert parse_study(shipped.to_toml().encode(), where="again") == shipped
    params = {"a b": 1, "text": 'q"\\\n\x7f\u2028支', "x": [1e-7, 1e16, -0.5, True], "t": {"k": []}}
    budget = {"kernel_evals": 1e6, "stop": {"suboptimality": 0.1}}
    study = marginbench.Study(**STUDY, description="two\nlines", budget=budget, tuning={"folds": 3})
    entry = marginbench.SolverEntry(name="SMO", label="SMO", params=params, tune={"tol": [0.1]})
    study = study.with_solvers([entry])
    (tmp_path / "s.toml").write_text(study.to_toml(), encoding="utf-8")
    again = marginbench.Study.from_toml(tmp_path / "s.toml")
    for name in ("solver", "budget", "tuning", "description"):
        assert getattr(again, name) == getattr(study, name)


def test_what_toml_cannot_hold_is_refused():
    entry = marginbench.SolverEntry(name="SMO", label="SMO", params={"class_weight": np.zeros(2)})
    study = marginbench.Study(**STUDY).with_solvers([entry])
    with pytest.raises(StudyError, match="cannot hold all values of the study: Obj"):
        study.to_toml()
    with pytest.raises(StudyError, match="is of the kind 'feasibility'; use load_study"):
        marginbench.Study.from_toml("mpfp14-table2")


def test_a_study_of_python_is_completed_as_one_of_a_file(tmp_path, in_this_process):
    done = marginbench.run(marginbench.Study(**STUDY), tmp_path / "out", quiet=True)
    assert re.fullmatch(r"RunResults\('.*out': 1 of 1 runs; 1 converged\)", repr(done))
    assert done.records.runs["test_error"].notna().all()
    assert done.records.study.solver[0].name == "SMO"
    assert "<td>1 / 1</td>" in done._repr_html_()
    wrong = marginbench.Study(**{**STUDY, "solver": [{"name": "SMOO"}]})
    with pytest.raises(StudyError, match=r"study: solver\[1\].name: unknown solver 'SMOO' \(did"):
        marginbench.run(wrong, tmp_path / "other")


@pytest.mark.slow
def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= 7
    names = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    for promised in re.findall(r"print\(.*\)  # (.*)", "".join(blocks)):
        assert promised in printed
