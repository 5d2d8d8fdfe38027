"""Which share of the instances feasibility methods solve within a cost."""

from __future__ import annotations

from marginbench.reports.results import load_results
from marginbench.reports.views.feasibility import solved_figures


def views(write_results, records, cells, methods):
    return solved_figures(load_results(write_results(records, cells, methods)), "")[0]


def test_instances_that_were_not_solved_count_and_skipped_ones_do_not(make, write_results):
    record = make.method_record
    records = [
        record("a", "VN", 0, 100),
        record("a", "VN", 1, 300),
        record("b", "VN", 0, 100, status="budget", found="budget"),
        record("a", "PCT", 0, 50),
        record("a", "PCT", 1, None, status="timeout"),
        record("b", "PCT", 0, None, status="skipped"),
    ]
    cells, methods = [make.cell("a"), make.cell("b")], [make.method("VN"), make.method("PCT")]
    iterations, products = views(write_results, records, cells, methods)
    steps = iterations.drawing.data.to_dict("list")
    # VN: two instances share the weight of "a"; PCT: one of two, on "a" alone.
    assert steps == {
        "solver": ["VN", "VN", "PCT"],
        "cost": [100.0, 300.0, 50.0],
        "share": [0.25, 0.5, 0.5],
    }
    assert products.drawing.data["cost"].to_list() == [200.0, 600.0, 100.0]
    assert iterations.note == "Solved: VN 2 of 3 instances, PCT 1 of 2 instances."


def test_one_method_or_one_problem_has_no_profile(make, write_results):
    record = make.method_record
    cells, methods = [make.cell("a"), make.cell("b")], [make.method("VN"), make.method("PCT")]
    one_method = [record("a", "VN", 0), record("b", "VN", 0)]
    assert views(write_results, one_method, cells, methods) == []
    one_problem = [record("a", "VN", 0), record("a", "PCT", 0)]
    assert views(write_results, one_problem, cells, methods) == []
