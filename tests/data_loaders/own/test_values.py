"""Features and labels against pandas and scikit-learn, which compute them by other means."""

from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
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


def halves(frame):
    return frame.iloc[:40], frame.iloc[40:]


@pytest.mark.parametrize("scale", SCALERS)
def test_scales_and_categories(frame, here, scale):
    train, test = halves(frame)
    test = test.assign(job=test["job"].replace("smith", "poet"))  # not in the training part
    train.to_csv("train.csv", index=False)
    test.to_csv("test.csv", index=False)
    data = load("train.csv", {"test": "test.csv", "scale": scale})
    # Numbers scaled, texts one-hot, in the order of the columns.
    number, text = SCALERS[scale], OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (number, ["age"]), (text, ["job"]), (number, ["income"]), (text, ["town"])
    )
    X_train, X_test = columns.fit_transform(train), columns.transform(test)
    if scale == "norm":
        X_train, X_test = map(Normalizer().transform, (X_train, X_test))
    np.testing.assert_allclose(data.X_train, X_train, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(data.X_test, X_test, rtol=2e-6, atol=1e-6)
    assert data.X_train.dtype == np.float32
    np.testing.assert_array_equal(data.y_test, np.where(test["y"] == "yes", 1, -1))
    assert data.y_test.dtype == np.int8


@pytest.mark.parametrize("missing", ["mean", "median", "most_frequent"])
def test_missing_values_are_filled_from_the_training_part(frame, loaded, missing):
    frame = frame.assign(age=frame["age"] // 10 * 10.0)
    frame.loc[[0, 3, 50], "age"] = np.nan
    frame.loc[[5, 55], "job"] = np.nan
    table = frame.to_csv(index=False)
    data = loaded(table, missing=missing, test="last 20", categorical="job")
    train, test = halves(frame)
    numbers = make_pipeline(SimpleImputer(strategy=missing), StandardScaler())
    most_frequent = SimpleImputer(strategy="most_frequent")
    jobs = make_pipeline(most_frequent, OneHotEncoder(sparse_output=False))
    columns = make_column_transformer((numbers, ["age"]), (jobs, ["job"]))
    np.testing.assert_allclose(data.X_train[:, :4], columns.fit_transform(train), atol=1e-6)
    np.testing.assert_allclose(data.X_test[:, :4], columns.transform(test), atol=1e-6)
    assert "missing values: 5 in age, job; filled in with " in "\n".join(data.decided)


def test_rows_with_missing_values_can_be_left_out(frame, loaded):
    frame.loc[[0, 50], "age"] = np.nan
    frame.loc[7, "y"] = None
    table = frame.to_csv(index=False, na_rep="?")
    data = loaded(table, missing="drop", test="last 20", scale="none")
    train, test = (part.dropna() for part in halves(frame))
    np.testing.assert_array_equal(data.X_train[:, 0], train["age"])
    np.testing.assert_array_equal(data.X_test[:, 0], test["age"])
    np.testing.assert_array_equal(data.y_train, np.where(train["y"] == "yes", 1, -1))
    assert "missing values: 3 in y, age; 3 rows with them left out" in data.decided


def test_a_constant_column_becomes_zero_and_huge_offsets_are_exact(loaded):
    rows = [f"0.1,{10**9 + k},{'ab'[k % 2]}\n" for k in range(6)]
    data = loaded("c,big,y\n" + "".join(rows), test="last 2")
    np.testing.assert_array_equal(data.X_train[:, 0], 0)
    np.testing.assert_allclose(data.X_train[:, 1], (np.arange(4) - 1.5) / np.std(range(4)))


def test_the_split_is_stratified_like_scikit_learns(loaded):
    y = np.random.default_rng(1).permutation(np.repeat(["a", "b", "c"], [61, 30, 9]))
    frame = pd.DataFrame({"x": np.arange(100.0) ** 2, "y": y})
    data = loaded(frame.to_csv(index=False), split_seed=7, test_fraction=0.25, scale="none")
    _, expected_test = train_test_split(frame["y"], test_size=0.25, stratify=frame["y"])
    counts = expected_test.value_counts().sort_index()
    assert data.n_test == len(expected_test) == 25
    assert np.abs(np.bincount(data.y_test) - counts).max() <= 1
    # Every row is in one of the parts, in the order of the file.
    both = np.concatenate([data.X_train[:, 0], data.X_test[:, 0]])
    np.testing.assert_array_equal(np.sort(both), frame["x"].astype(np.float32))
    assert (np.diff(data.X_test[:, 0]) > 0).all()


def test_the_split_depends_on_the_seed_alone(loaded):
    # The first outputs of Vigna's splitmix64.c from the seed 1234567.
    assert list(islice(split_mix(1234567), 2)) == [6457827717110365317, 3203168211198807973]
    table = "x,y\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(40))

    def tested(**options):
        return loaded(table, scale="none", **options).X_test[:, 0]

    assert set(tested()) != set(tested(split_seed=1))
    start = next(split_mix(0))
    order = sorted(range(40), key=dict(enumerate(islice(split_mix(start), 40))).__getitem__)
    stratified = [row for word in (0, 1) for row in [k for k in order if k % 2 == word][:6]]
    np.testing.assert_array_equal(tested(), sorted(stratified))
    np.testing.assert_array_equal(tested(stratify=False), sorted(order[:12]))


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
    ],
)
def test_which_class_is_positive(loaded, classes, options, labels):
    places = [0] * 4 + [place for place in range(1, len(classes)) for _ in range(6)]
    rows = [f"{k},{classes[place]}\n" for k, place in enumerate(places)]
    data = loaded("x,y\n" + "".join(rows), scale="none", **options)
    assert data.y_train.tolist() == [labels[places[int(k)]] for k in data.X_train[:, 0]]
    assert data.y_train.dtype == (np.int8 if -1 in labels else np.int64)


def test_many_categories_are_stored_as_sparse_rows(loaded):
    generator = np.random.default_rng(2)
    words = [f"w{k:03}" for k in generator.permutation(np.repeat(np.arange(100), 3))]
    frame = pd.DataFrame({"word": words, "x": generator.normal(size=300), "y": np.arange(300) % 2})
    data = loaded(frame.to_csv(index=False), test="last 100")
    train, test = frame.iloc[:200], frame.iloc[200:]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["word"]),
        (StandardScaler(), ["x"]),
        sparse_threshold=0,
    )
    np.testing.assert_allclose(data.X_train.toarray(), columns.fit_transform(train), atol=1e-6)
    np.testing.assert_allclose(data.X_test.toarray(), columns.transform(test), atol=1e-6)


def test_an_infinite_number_among_words_is_a_word(loaded):
    rows = [f"{word},{place % 2}\n" for place, word in enumerate(["inf", "red", "blue", "4"] * 3)]
    assert loaded("word,y\n" + "".join(rows), test="last 4").X_train.shape == (8, 4)


def test_a_column_without_a_name_is_called_by_its_number(here):
    frame = pd.DataFrame({"": [1.0, 2.0] * 30, "b": np.arange(60.0), "target": ["n", "p"] * 30})
    frame.to_parquet("x.parquet", index=False)
    frame.to_csv("x.csv", index=False)
    Path("x.arff").write_text(
        "@relation r\n@attribute '' numeric\n@attribute b numeric\n@attribute target {n, p}\n"
        "@data\n" + frame.to_csv(index=False, header=False)
    )
    tables = [load(f"x.{ending}") for ending in ("csv", "parquet", "arff")]
    assert len({data.fingerprint for data in tables}) == 1
    assert tables[0].n_features == 2
    assert load("x.parquet", {"target": 1, "drop": 3}).n_features == 1


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
    ("words", "n_classes"),
    [
        (["7", "007"], 2),
        (["1.1", "1.10"], 2),
        ([str(2**53), str(2**53 + 1)], 2),
        (["1", "2", "02"], 3),
        (["1", "+1", "1.0", "1e0", "-1"], 2),
    ],
)
def test_distinct_classes_stay_apart(loaded, words, n_classes):
    data = loaded("x,y\n" + "".join(f"{k % 13},{words[k % len(words)]}\n" for k in range(90)))
    assert len(np.unique(data.y_train)) == n_classes


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
    rows = [f"{k};{k % 9};{k % 50};;{k}\n" for k in range(120)]
    data = loaded(";price;n;y;\n" + "".join(rows), target="n", test="last 50")
    assert data.decided[3] == "dropped columns: y (no values)"
    assert data.decided[-3:] == (
        "hint: 50 classes that are numbers; is it a regression target?",
        "hint: column 'column 1' only numbers the rows; add it to drop",
        "hint: column 'column 5' only numbers the rows; add it to drop",
    )
    rows = [f"{k}th;{'np'[k % 2]}\n" for k in range(60)]
    assert loaded("price;y\n" + "".join(rows), test="last 20").decided[-1] == (
        "hint: column 'price' holds 40 distinct texts, such as '0th'; are they numbers, dates or "
        "identifiers?"
    )


def test_texts_are_read_as_numbers_where_asked(loaded):
    rows = [f"{k % 5} %;1.00{k % 7},{k % 10};{k if k % 5 else '-'};{k % 3}\n" for k in range(1, 61)]
    table = "share;price;size;y\n" + "".join(rows)
    hints = [line for line in loaded(table).decided if "numbers" in line and "hint" in line]
    assert hints == [
        "hint: column 'share' holds texts that look like numbers, such as '0 %': list it in "
        "numeric, and set decimal",
        "hint: column 'price' holds texts that look like numbers, such as '1.000,1': list it in "
        "numeric, and set decimal",
        "hint: column 'size' holds numbers beside '-': if that means no value, add it to "
        "missing_words",
    ]
    options = {"numeric": ["share", "price", "size"], "decimal": ",", "missing": "drop"}
    data = loaded(table, scale="none", **options)
    assert data.n_train + data.n_test == 48
    found = {tuple(row) for row in np.vstack([data.X_train, data.X_test]).tolist()}
    price = [np.float32(1000 + k % 7 + (k % 10) / 10).item() for k in range(61)]
    assert found == {(k % 5, price[k], k) for k in range(1, 61) if k % 5}


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


def test_truth_is_spelt_alike_in_every_format(frame, here):
    frame.assign(y=frame["y"] == "yes").to_parquet("x.parquet")
    frame.assign(y=frame["y"] == "yes").to_csv("x.csv", index=False)
    labels = [load(name, {"positive": True}).y_train for name in ("x.parquet", "x.csv")]
    np.testing.assert_array_equal(*labels)


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
