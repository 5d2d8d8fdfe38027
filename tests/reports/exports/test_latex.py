"""LaTeX of any text: nothing in it is a command, and it compiles with booktabs alone."""

import re
import shutil
import subprocess
from pathlib import Path

import matplotlib
import pytest
from matplotlib.ft2font import FT2Font

from marginbench.reports.exports.latex import escaped, tabular
from marginbench.reports.tables import Cell, Heading, Table

HOSTILE = [
    r"a_b % & # $ ~ ^ \ { } < > | ` ' '' -- --- ?` !` ,, \"q\"",
    r"\input{/etc/passwd} \end{tabular} \\ $x^2$ ~/.bashrc %",
    "[starts like an option",
    "*starts like a star",
    "κ − × ≤ ≥ Γ Α λ Λ µ ς Ω 10⁻³ x₂ ½ ‖w‖² … “a” ‘b’",  # noqa: RUF001
    "é ü ő ç Å ï ł ß æ ø \N{LATIN SMALL LIGATURE FI} № Ǻ",
    "emoji \N{ROCKET} 日本 \N{GREEK THETA SYMBOL}",
    "a\u202eb\x00c\td\ne",
    "x" * 120,
    "".join(map(chr, range(0xA0, 0x180))),
]


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("95 % of a_b & c#1", r"95 \% of a\_b \& c\#1"),
        ("{$x^2~y$}", r"\{\$x\textasciicircum{}2\textasciitilde{}y\$\}"),
        ("\\input", r"\textbackslash{}input"),
        ("κ ≤ 1.5×10⁻³", r"$\kappa$ $\leq$ 1.5×10$^{-3}$"),  # noqa: RUF001
        ("λ Λ Α µ", r"$\lambda$ $\Lambda$ {[}U+0391{]} µ"),  # noqa: RUF001
        ("\N{MINUS SIGN}1.2\N{NARROW NO-BREAK SPACE}%", r"$-$1.2\,\%"),
        ("a--b", "a-{}-b"),
        ("n² x₁₂", "n$^{2}$ x$_{12}$"),
        ("Österreich, Łódź", "Österreich, Łódź"),
        ("\N{ROCKET}", "{[}U+1F680{]}"),
        ("a\u202eb", r"a\textbackslash{}u202eb"),
    ],
)
def test_text_is_escaped_for_what_it_reads_as(text, latex):
    assert escaped(text) == latex


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_text_has_no_command_of_its_own(text):
    latex = escaped(text)
    assert r"\input" not in latex
    # Outside of a command nothing special is left.
    assert not re.search(r"[%&#~\\\n\x00]", re.sub(r"\\([a-zA-Z]+|.)|[{}$^_]", "", latex))


def test_a_table_has_rules_groups_ranges_notes_and_what_is_bold():
    numbers = [Heading(name, "number", "At the end") for name in ("Error", "Number of all of them")]
    best = Cell("1.2×10⁻³", range="1–2", note="2 of 3 runs", best=True)  # noqa: RUF001
    table = Table(
        "Results on a_b",
        [Heading("Solver"), *numbers, Heading("Status", "", "Runs")],
        [
            [Cell("SMO"), best, Cell("12345"), Cell("ok")],
            [Cell("<b>"), Cell("7"), Cell("8"), Cell("ok")],
        ],
        caption="Medians.",
    )
    lines = tabular(table, "results-a-b").splitlines()
    assert r"\caption{Results on a\_b. Medians.}" in lines
    assert r"\label{tab:results-a-b}" in lines
    assert r"\begin{tabular}{lrrl}" in lines
    assert lines.index(r"\toprule") < lines.index(r"\midrule") < lines.index(r"\bottomrule")
    assert r" & \multicolumn{2}{c}{At the end} & \multicolumn{1}{c}{Runs} \\" in lines
    assert r"\cmidrule(lr){2-3}\cmidrule(lr){4-4}" in lines
    # A heading has lines no longer than its longest word and its numbers.
    stacked = r"\begin{tabular}[b]{@{}r@{}}Number \\ of all \\ of \\ them\end{tabular}"
    assert rf"Solver & Error & {stacked} & Status \\" in lines
    value = r"SMO & \textbf{\boldmath 1.2×10$^{-3}$} & 12345 & ok \\"  # noqa: RUF001
    place = lines.index(value)
    assert lines[place + 1 : place + 3] == [
        r" & {\scriptsize 1–2} &  &  \\",  # noqa: RUF001
        r" & {\scriptsize 2 of 3 runs} &  &  \\",
    ]
    assert r"\textless{}b\textgreater{} & 7 & 8 & ok \\" in lines


@pytest.mark.parametrize("n", [1, 6, 15])
@pytest.mark.parametrize("letter", ["0", "m", "W"])
def test_a_wide_table_is_in_parts_that_fit_a_page_and_hold_every_column_once(n, letter):
    """In Computer Modern of 8 points, bold, with 4 points on both sides of a column."""
    font = FT2Font(str(Path(matplotlib.get_data_path(), "fonts", "ttf", "cmb10.ttf")))
    font.set_size(8, 72)
    words = 5 * letter
    width = 8 + sum(font.load_char(ord(each)).linearHoriAdvance for each in f"00{words}") / 65536
    headings = [Heading(f"h{place:02}", "number") for place in range(n)]
    cells = [Cell(f"{place:02}{words}", best=True) for place in range(n)]
    text = tabular(Table("t", headings, [cells]), "t")
    parts = [len(found) for found in re.findall(r"\\begin\{tabular\}\{(r+)\}", text)]
    # Each is filled, but for the last one, and begins with the first column.
    assert all(part * width > 345 / 2 for part in parts[:-1])
    assert max(parts) * width <= 345
    found = re.findall(r"\bh(\d\d)\b", text)
    assert [found.count(f"{place:02}") for place in range(n)] == [len(parts), *[1] * (n - 1)]
    assert found == re.findall(rf"(\d\d){words}", text)
    assert sum(parts) == len(found)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_hostile_tables_compile_with_booktabs_alone(tmp_path):
    headings = [Heading("_%"), Heading("$ &", "number", "#"), Heading("^", "reason"), Heading("~")]
    rows = [
        [Cell(text), Cell("1", range=text, note=text, best=True), Cell(text), Cell(text, code=True)]
        for text in HOSTILE
    ]
    table = tabular(Table(HOSTILE[0], headings, rows, caption=" ".join(HOSTILE)), "hostile")
    text = f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}{table}\n"
    (tmp_path / "t.tex").write_text(text + r"\end{document}", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "t.pdf").stat().st_size > 1000
