"""Pages of solvers: their names, and their documentation from their docstrings."""

from __future__ import annotations

import re

import pytest

from marginbench.reports.naming import slug
from marginbench.reports.site import docstrings
from marginbench.reports.site.naming import SolverClass, numbered, solver_slugs
from marginbench.solvers.registration import entries


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Quickstart", "quickstart"),
        ("../../x", "x"),
        ("<b>Fünf  Löser</b>", "b-funf-loser-b"),
        ("\N{FIRE}", "study"),
        ("", "study"),
        ("a" * 120, "a" * 60),
        ("-" * 59 + "a" * 59 + "-b", "a" * 59),
    ],
)
def test_slugs_are_safe_in_any_address(text, expected):
    assert slug(text, "study") == expected


def test_names_that_are_taken_get_numbers():
    assert numbered(["a", "a", "a-2", "b", "a"]) == ["a", "a-3", "a-2", "b", "a-4"]


@pytest.mark.parametrize(
    ("text", "registered", "title"),
    [
        ("marginbench:SMO", True, "SMO"),
        ("marginbench.solvers.smo.smo:SMO", True, "SMO"),
        ("MPLFP", True, "MPLFP"),
        ("marginbench:Gone", False, "Gone"),
        ("smo.py:SMO", False, "SMO"),
        ("marginbench_extras:SMO", False, "SMO"),
        ("command:svm-train -q", False, "command:svm-train -q"),
        ("", False, "the label"),
    ],
)
def test_only_marginbenchs_own_classes_are_described_from_code(text, registered, title):
    found = SolverClass.recorded(text, "the label")
    assert (found.registered, found.title) == (registered, title)


def test_a_solver_of_a_user_never_takes_the_page_of_a_registered_one():
    own, other, third = (SolverClass.recorded(text, "") for text in ("SMO", "smo", "x.py:smo"))
    found = solver_slugs([own, other, third])
    assert (found[own], found[third]) == ("smo", "x-py-smo")
    assert re.fullmatch("smo-[0-9a-f]{8}", found[other])
    # Whether the site has a study with the registered one makes no difference.
    assert solver_slugs([other]) == {other: found[other]}


def _documented(monkeypatch, text: str) -> str:
    monkeypatch.setattr(docstrings, "_docstring", lambda name: text)
    return str(docstrings.documentation("SMO", {"SBP": "sbp.html"}))


def test_formulas_are_text_and_classes_are_links(monkeypatch):
    html = _documented(
        monkeypatch,
        "Solves |w|^2 * x_i, see ``a_ * |b|``, :class:`marginbench.SBP` and :class:`~m.Other`.\n\n"
        "Attributes\n----------\nalpha_ : array\ncoef_ : array\n    <b>Weights</b> of alpha_.\n",
    )
    assert "Solves |w|^2 * x_i, see" in html
    assert 'href="sbp.html">SBP</a>' in html
    assert "Other</span>" in html
    assert re.findall(r"<dt>(\w+)<span", html) == ["alpha_", "coef_"]
    assert "&lt;b&gt;Weights&lt;/b&gt; of alpha_." in html
    assert "system-message" not in html


@pytest.mark.parametrize(
    "text", ["Text.\n\n.. raw:: html\n\n   <script>x</script>\n", ".. include:: /etc/hostname\n"]
)
def test_a_docstring_brings_in_no_markup_and_no_file(monkeypatch, text):
    with pytest.raises(ValueError, match="the docstring of SMO cannot be rendered"):
        _documented(monkeypatch, text)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(entries()))
def test_the_docstring_of_every_registered_solver_renders_with_its_papers(name):
    html = str(docstrings.documentation(name, {}))
    for heading in ("Parameters", "Notes", "References"):
        assert f"<h2>{heading}</h2>" in html
    cited = re.findall(r'class="citation" id="(\w+)"', html)
    papers = docstrings.bibtex(name)
    assert len(papers) == len(cited) > 0
    for paper in papers:
        assert re.match(r"@misc\{[a-z]+\d{4}[a-z]+,\n  author = \{\w[^{}]*\},\n  title = ", paper)


def test_a_paper_is_cited_by_what_the_docstring_says(monkeypatch):
    reference = (
        "References\n----------\n.. [AB01] Ahn, Bär: Cuts: a method. JMLR 2(1),\n   2001. "
        "BibTeX key ``ahn2001cuts``.\n.. [C] A note without a key.\n"
    )
    monkeypatch.setattr(docstrings, "_docstring", lambda name: reference)
    assert docstrings.bibtex("SMO") == [
        "@misc{ahn2001cuts,\n"
        "  author = {Ahn and Bär},\n"
        "  title = {{Cuts: a method}},\n"
        "  howpublished = {JMLR 2(1), 2001},\n"
        "  year = {2001},\n"
        "}"
    ]
