"""``marginbench study``: a study to begin with, what a study consists of, and what is wrong."""

import json
import time

import pytest


@pytest.fixture(autouse=True)
def here(in_this_process, tmp_path, monkeypatch):
    """Every command is in an empty folder."""
    monkeypatch.chdir(tmp_path)


def test_a_new_study_is_valid_and_never_overwrites(run, tmp_path):
    said = "mine.toml is written; run it: marginbench run mine.toml\n"
    assert run("study", "new", "mine") == (0, said, "")
    before = (tmp_path / "mine.toml").read_text()
    code, _, err = run("study", "new", "mine.toml")
    assert (code, (tmp_path / "mine.toml").read_text()) == (2, before)
    assert err == "marginbench: mine.toml exists and is left as it is; choose another name\n"
    assert run("study", "validate", "mine.toml") == (0, "ok: 2 tasks x 3 solvers: 14 runs\n", "")
    found = json.loads(run("study", "validate", "mine.toml", "--json")[1])
    assert found == {"ok": True, "size": "2 tasks x 3 solvers: 14 runs", "skips": []}
    for name in ("../mine", "a" * 101):
        code, _, err = run("study", "new", name)
        assert (code, err.count("\n")) == (2, 1)
        assert f"'{name}' is no name for a study" in err
    assert run("study", "new", "a" * 100)[0] == 0


@pytest.mark.slow
def test_a_new_study_runs(run):
    run("study", "new", "mine")
    code, out, _ = run("run", "mine.toml")
    assert code == 0
    assert out.splitlines()[1] == "14 runs: 2 converged, 12 budget"


def test_a_shipped_study_is_shown_as_it_runs(run):
    code, out, _ = run("study", "show", "quickstart")
    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "quickstart: Quickstart: five kernel solvers and LIBSVM on small data"
    # SMO and LIBSVM are deterministic: one seed of three.
    assert "4 tasks x 6 solvers: 56 runs, 12 skipped" in lines
    assert any(line.startswith("skipped: LIBSVM on digits: LIBSVM always fits") for line in lines)
    task = "dataset=checkers, n_train=2000, n_test=2000, kernel=rbf, gamma=10, C=1"
    assert f"checkers           {task}, fit_intercept=false" in lines
    assert "SBP           12 runs, nu=reference, max_epochs=10" in lines
    found = json.loads(run("study", "show", "quickstart", "--json")[1])
    assert (found["n_runs"], found["budget"]["timeout"]) == (56, 60.0)
    assert [entry["n_runs"] for entry in found["solvers"]] == [4, 12, 12, 12, 12, 4]
    assert found["tasks"][3]["label"] == "digits, with bias"
    # Methods that do not fit a task do not count.
    assert "552 runs" in run("study", "show", "mpfp14-table2")[1]


def test_a_kernel_in_a_file_of_ones_own(run, tmp_path):
    (tmp_path / "mine.py").write_text("from marginbench.solvers import Linear as Mine\n")
    study = (
        'name = "mine"\n[[task]]\ndataset = "digits"\nkernel = "mine.py:Mine"\n'
        '[[solver]]\nname = "SMO"\n'
    )
    for words, message in (
        (':Mine"', ""),
        (':Absent"', "Absent"),
        (':Mine"\ngamma = 2.0', "in kern"),
    ):
        (tmp_path / "mine.toml").write_text(study.replace(':Mine"', words))
        code, _, err = run("study", "validate", "mine.toml")
        assert (code, err.count("\n")) == ((2, 1) if message else (0, 0))
        assert message in err


def test_more_runs_than_can_be_planned_are_refused_at_once(run, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'name = "huge"\nseeds = 100000\n[[task]]\ndataset = "digits"\n'
        f"C = {[*range(1, 251)]}\n[[solver]]\n"
        f'name = "Pegasos"\nparams = {{ max_epochs = {[*range(1, 101)]} }}\n'
    )
    began = time.process_time()
    for arguments, words in (
        (("study", "validate", "mine.toml"), "make more than 200000 runs"),
        (("run", "--seeds", "40000", "--dry-run"), "4 tasks x 6 solvers with their seeds make mor"),
    ):
        code, out, err = run(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert words in err
    assert time.process_time() - began < 20.0, "nothing is listed to be counted"
