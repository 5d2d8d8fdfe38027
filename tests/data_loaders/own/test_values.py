"""Features and labels against pandas and scikit-learn, which compute them by other means."""

from collections import Counter
from itertools import islice

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.sparse import issparse
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler

from marginbench.data_loaders import load
from marginbench.data_loaders.own.columns import cleaned

from ..conftest import refused

SCALERS = {
    "standard": StandardScaler(),
    "minmax": MinMaxScaler((-1, 1)),
    "unit": MinMaxScaler(),
    "none": "passthrough",
    "norm": "passthrough",
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("scale", "missing", "said"),
    [
        ("minmax", "error", "none"),
        ("standard", "mean", "5 in age, job; filled in with the mean, or the most frequent categ"),
        ("unit", "median", "5 in age, job; filled in with the median, or the most frequent categ"),
        ("none", "most_frequent", "5 in age, job; filled in with the most frequent value of the "),
        ("norm", "drop", "6 in y, age, job; 6 rows with them left out"),
    ],
)
def test_features_are_those_of_scikit_learn(frame, here, scale, missing, said, wide):
    """Numbers scaled and texts one-hot, in the order of the columns; sparse if few are not 0."""
    frame = frame.assign(age=frame["age"] // 10 * 10.0)
    if wide:
        words = {
            name: [f"{name} {k % 45}" for k in range(60)] for name in ("job", "income", "town")
        }
        frame = frame.assign(**words)
    frame.loc[40:, "job"] = frame["job"][40:].replace("smith", "poet")  # not in the training part
    if missing != "error":
        frame.loc[[0, 3, 50], "age"] = np.nan
        frame.loc[[5, 55], "job"] = np.nan
    if missing == "drop":
        frame.loc[7, "y"] = None
    train, test = frame[:40], frame[40:]
    train.to_csv("train.csv", index=False, na_rep="?")
    test.to_csv("test.csv", index=False, na_rep="?")
    data = load("train.csv", {"test": "test.csv", "scale": scale, "missing": missing})
    assert f"missing values: {said}" in "\n".join(data.decided)
    if missing == "drop":
        train, test = train.dropna(), test.dropna()
    fill = SimpleImputer(strategy="mean" if missing in ("error", "drop") else missing)
    number = make_pipeline(fill, SCALERS[scale])
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    text = make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot)
    income = text if wide else number
    columns = make_column_transformer(
        (number, ["age"]), (text, ["job"]), (income, ["income"]), (text, ["town"])
    )
    columns = make_pipeline(columns, Normalizer() if scale == "norm" else "passthrough")
    for X, expected in (
        (data.X_train, columns.fit_transform(train)),
        (data.X_test, columns.transform(test)),
    ):
        assert issparse(X) == wide
        assert X.dtype == np.float32
        np.testing.assert_allclose(X.toarray() if wide else X, expected, rtol=2e-6, atol=1e-6)
    np.testing.assert_array_equal(data.y_train, np.where(train["y"] == "yes", 1, -1))
    np.testing.assert_array_equal(data.y_test, np.where(test["y"] == "yes", 1, -1))
    assert data.y_test.dtype == np.int8


def test_a_constant_of_the_training_part_becomes_zero_and_huge_offsets_are_exact(loaded):
    rows = [f"{0.1 if k < 4 else 0.7},{10**9 + k},{'ab'[k % 2]}\n" for k in range(6)]
    data = loaded("c,big,y\n" + "".join(rows), test="last 2")
    assert not data.X_train[:, 0].any()
    assert not data.X_test[:, 0].any()
    np.testing.assert_allclose(data.X_train[:, 1], (np.arange(4) - 1.5) / np.std(range(4)))


@pytest.mark.parametrize("stratify", [True, False])
def test_the_seed_alone_draws_as_many_of_each_class_as_scikit_learn(loaded, stratify):
    # The first outputs of Vigna's splitmix64.c from the seed 1234567.
    assert list(islice(split_mix(1234567), 2)) == [6457827717110365317, 3203168211198807973]
    y = np.random.default_rng(1).permutation(np.repeat(["a", "b", "c"], [61, 30, 9]))
    table = pd.DataFrame({"x": range(100), "y": y}).to_csv(index=False)
    options = {"split_seed": 7, "test_fraction": 0.25, "stratify": stratify}
    data = loaded(table, scale="none", **options)
    ranks = [*islice(split_mix(next(split_mix(7))), 100)]
    order = sorted(range(100), key=ranks.__getitem__)
    drawn = order[:25]
    if stratify:
        counts = Counter(train_test_split(y, test_size=0.25, stratify=y)[1])
        drawn = [
            row for word in "abc" for row in [k for k in order if y[k] == word][: counts[word]]
        ]
    # In the order of the file.
    np.testing.assert_array_equal(data.X_test[:, 0], sorted(drawn))
    np.testing.assert_array_equal(data.X_train[:, 0], sorted({*range(100)} - {*drawn}))


def split_mix(state):
    """SplitMix64 in plain Python."""
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def test_a_column_says_which_rows_are_the_test_part(frame, loaded):
    parts = np.where(np.arange(60) % 3 == 1, "Test", "train")
    table = frame.assign(part=parts).to_csv(index=False)
    data = loaded(table, split="part", target="y", scale="none")
    np.testing.assert_array_equal(data.X_test[:, 0], frame["age"][1::3])
    assert data.n_features == 2 + 3 + 2
    assert data.decided[1] == "split: by the column 'part' (40 training and 20 test rows)"


@pytest.mark.parametrize(
    ("classes", "options", "labels"),
    [
        (["no", "yes"], {}, [-1, 1]),
        (["0", "1"], {}, [-1, 1]),
        (["a", "b"], {}, [1, -1]),  # the rarer one is positive
        (["a", "b", "c"], {"positive": "c"}, [-1, -1, 1]),
        (["3", "5", "7.0"], {"positive": 7}, [-1, -1, 1]),
        (["3", "5", "7.0"], {}, [3, 5, 7]),
        (["c", "b", "a"], {}, [2, 1, 0]),
        (["yes", "no"], {"positive": "none"}, [1, 0]),
        # What is no other spelling of the same whole number is another class.
        (["1", "+1", "1.0", "1e0", "-1"], {}, [1, 1, 1, 1, -1]),
        (["7", "007"], {}, [1, -1]),
        (["1.1", "1.10"], {}, [1, -1]),
        ([str(2**53), str(2**53 + 1)], {}, [1, -1]),
        (["1", "2", "02"], {}, [0, 2, 1]),
        (["0", "-0", "1"], {}, [-1, -1, 1]),
        (["a", "10", "2"], {}, [2, 1, 0]),
        (["3", "5", str(2**53 - 1)], {}, [3, 5, 2**53 - 1]),
        (["3", "5", str(2**53)], {}, [0, 1, 2]),
    ],
)
def test_which_class_is_positive(loaded, classes, options, labels):
    places = [0] * 4 + [place for place in range(1, len(classes)) for _ in range(6)]
    rows = [f"{k},{classes[place]}\n" for k, place in enumerate(places)]
    data = loaded("x,y\n" + "".join(rows), scale="none", **options)
    assert data.y_train.tolist() == [labels[places[int(k)]] for k in data.X_train[:, 0]]
    assert data.y_train.dtype == (np.int8 if -1 in labels else np.int64)


def test_the_last_number_that_fits_a_limit(loaded):
    def table(n, form):
        return "x,w,y\n" + "".join(form.format(k % n, k % 2) + "\n" for k in range(2 * n + 3))

    for n in (20, 21):
        # One column of 20 makes 5 % of the features.
        data = loaded(table(n, "w{0},w{0},{1}"), drop="x", test="last 4")
        assert issparse(data.X_train) == (n == 21)
    assert loaded(table(1000, "2,w{0},{1}"), test="last 4").n_features == 1001
    assert loaded(table(1000, "2,3,{0}"), test="last 1003").y_train.max() == 999
    assert len(np.unique(loaded(table(20, "2,3,{0}.5"), test="last 23").y_train)) == 20
    too_many = "x.csv: column 'w' holds texts, 1001 distinct ones in the training part (too many)"
    assert too_many in refused(loaded, table(1001, "2,w{0},{1}"), test="last 4")
    for n, form in ((1001, "2,3,{0}"), (21, "2,3,{0}.5")):
        message = refused(loaded, table(n, form))
        assert message.startswith(f"x.csv: the target 'y' has {n} distinct values")


def test_every_spelling_of_a_number(loaded):
    table = "x,y\n+1.5,a\n2.,b\n,a\n-.5e1,b\n0,a\n1,b\n"
    data = loaded(table, scale="none", missing="mean", test="last 2")
    np.testing.assert_array_equal(data.X_train[:, 0], [1.5, 2.0, -0.5, -5.0])


def test_an_infinite_number_among_words_is_a_word(loaded):
    rows = [f"{word},{place % 2}\n" for place, word in enumerate(["inf", "red", "blue", "4"] * 3)]
    assert loaded("word,y\n" + "".join(rows), test="last 4").X_train.shape == (8, 4)


@pytest.mark.parametrize("name", ["subject", None, ""])
def test_the_index_of_a_data_frame_is_no_feature(frame, here, name):
    # In the order of the classes, after which it would give them away.
    indexed = frame.sort_values("y").set_axis([f"s{k:02}" for k in range(60)]).rename_axis(name)
    indexed.to_parquet("x.parquet")
    data = load("x.parquet")
    column = {None: "__index_level_0__", "": "column 6"}.get(name, name)
    assert f"dropped columns: {column} (the index of the data frame)" in data.decided
    indexed.to_parquet("plain.parquet", index=False)
    np.testing.assert_array_equal(data.X_train, load("plain.parquet").X_train)
    # An index that is the target is asked for by name.
    frame.set_index("y").to_parquet("x.parquet")
    assert load("x.parquet", {"target": "y"}).decided[0].startswith("target: column 'y'")
    assert load("x.parquet", {"target": "job"}).n_features == 4


@pytest.mark.parametrize(
    ("text", "n_rows"),
    [
        ("0,1,target\n" + "5.1,3.5,setosa\n5.0,3.5,virginica\n" * 20, 40),
        (",0,1,species\n" + "7,5.1,3.5,setosa\n7,5.0,3.5,virginica\n" * 20, 40),
        ("0,1\n" + "5.1,setosa\n5.0,virginica\n" * 20, 40),
        ("1999,age,y\n" + "5,31,n\n6,42,p\n" * 20, 40),
        ("0,1,kind\n" + "0,1,a\n5,3,b\n" * 20, 40),
        ("0,1\n" + "5,1\n6,0\n" * 20, None),
        ("0,c\n" + "5,a\n6,b\n" * 20, None),
        ("0,1,1\n1.5,0.5,0\n" * 20, None),
        ("M,0,1\n" + "F,4,0\nM,3,1\n" * 20, None),
        ("1.2,0.3,y\n1.5,0.5,n\n" * 20, None),
        ("1,0,no\n1.5,0.5,yes\n" * 20, None),
    ],
)
def test_whether_a_first_row_is_a_header(loaded, text, n_rows):
    data = loaded(text)
    assert data.n_train + data.n_test == (n_rows or text.count("\n"))
    assert ("header: none; columns are numbered" in data.decided) == (n_rows is None)


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("1,234.5", ".", 1234.5),
        ("-12,345,678", ".", -12345678.0),
        ("0,125", ".", None),
        ("12,34,567", ".", None),
        ("1234,567", ".", None),
        ("1.234,5", ",", 1234.5),
        ("1.01", ",", None),
        ("$ 1'000", ".", 1000.0),
        ("1e3", ".", 1000.0),
    ],
)
def test_a_sign_between_thousands_stands_nowhere_else(text, decimal, value):
    (word,) = cleaned(pa.array([text]), decimal).to_pylist()
    assert word is value is None or float(word) == value


def test_hints_name_what_is_probably_not_meant(loaded):
    rows = [
        f"{k};{k % 50};{k % 5} %;1.00{k % 7},{k % 10};{k % 5 if k % 2 else 'abcde'[k % 5]};{k}th;\n"
        for k in range(1, 121)
    ]
    table = ";n;share;price;size;rank;\n" + "".join(rows)
    data = loaded(table, target="n", test="last 50")
    assert data.decided[3] == "dropped columns: column 7 (no values)"
    like_numbers = "holds texts that look like numbers, such as"
    assert data.decided[-6:] == (
        "hint: 50 classes that are numbers; is it a regression target?",
        "hint: column 'column 1' only numbers the rows; add it to drop",
        f"hint: column 'share' {like_numbers} '0 %': list it in numeric, and set decimal",
        f"hint: column 'price' {like_numbers} '1.000,0': list it in numeric, and set decimal",
        # As many words as numbers, and no more than five.
        "hint: column 'size' holds numbers beside 'a', 'b', 'c', 'd', 'e': if that means no value, "
        "add it to missing_words",
        "hint: column 'rank' holds 70 distinct texts, such as '10th'; are they numbers, dates or "
        "identifiers?",
    )
    # Texts are read as numbers where asked.
    options = {"numeric": ["share", "price", "size"], "decimal": ",", "missing": "drop"}
    data = loaded(table, target="n", scale="none", drop=["rank", 1], **options)
    found = [tuple(row) for row in np.vstack([data.X_train, data.X_test]).tolist()]
    price = [np.float32(1000 + k % 7 + (k % 10) / 10).item() for k in range(121)]
    assert sorted(found) == sorted((k % 5, price[k], k % 5) for k in range(1, 121) if k % 2)


def test_a_number_names_the_column_of_the_training_table(frame, here):
    """The test table has the same columns in another order, some of them texts of numbers."""
    frame = frame.assign(income=frame["income"].map("{} %".format))
    frame[:40].to_csv("x.csv", index=False)
    frame[40:][["income", "town", "y", "job", "age"]].to_csv("test.csv", index=False)
    by_number, by_name = (
        load("x.csv", {"test": "test.csv", "missing": "mean", "numeric": [column]})
        for column in (3, "income")
    )
    assert by_number.decided == by_name.decided
    np.testing.assert_array_equal(by_number.X_test, by_name.X_test)


def test_training_rows_can_be_fewer(loaded):
    table = "k,b,y\n" + "".join(f"{k},{k % 3},{'abb'[k % 3]}\n" for k in range(300))
    all_of_them = loaded(table, scale="none")
    drawn = [loaded(table, scale="none", n_train=n) for n in (210, 60, 30)]
    np.testing.assert_array_equal(drawn[0].X_train, all_of_them.X_train)
    for larger, data, n in zip(drawn, drawn[1:], (60, 30), strict=False):
        np.testing.assert_array_equal(data.X_test, all_of_them.X_test)
        assert (data.n_train, (data.y_train == 1).sum()) == (n, n / 3)
        assert set(data.X_train[:, 0]) < set(larger.X_train[:, 0])
    said = "; of 210 training rows 60 are drawn by seed 0 (60 training and 90 test rows)"
    assert drawn[1].decided[1].endswith(said)
    message = refused(load, "x.csv", {"n_train": 211})
    assert "n_train = 211, but there are 210 training rows" in message
    assert "x.csv: one class only" in refused(load, "x.csv", {"n_train": 1})
    # The only row of a class stays, though it has the largest remainder.
    data = loaded("x,y\n" + "1,b\n2,c\n" * 5 + "3,a\n", test_fraction=0.6)
    assert (data.n_test, data.y_train.min()) == (6, 0)
