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

from marginbench.data_loaders import DataError, load
from marginbench.data_loaders.own.columns import cleaned

SCALERS = {
    "standard": StandardScaler(),
    "minmax": MinMaxScaler((-1, 1)),
    "unit": MinMaxScaler(),
    "none": "passthrough",
    "norm": "passthrough",
}


def halves(frame):
    return frame.iloc[:40], frame.iloc[40:]


def expected(train, test, scaler):
    """Numbers scaled, texts one-hot in the order of the columns."""
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer(
        (scaler, ["age"]), (one_hot, ["job"]), (scaler, ["income"]), (one_hot, ["town"])
    )
    return [columns.fit_transform(train), columns.transform(test)]


@pytest.mark.parametrize("scale", SCALERS)
def test_scales_and_categories(frame, here, scale):
    train, test = halves(frame)
    test = test.assign(job=test["job"].replace("smith", "poet"))  # not in the training part
    train.to_csv("train.csv", index=False)
    test.to_csv("test.csv", index=False)
    data = load("train.csv", {"test": "test.csv", "scale": scale})
    X_train, X_test = expected(train, test, SCALERS[scale])
    if scale == "norm":
        X_train, X_test = map(Normalizer().transform, (X_train, X_test))
    np.testing.assert_allclose(data.X_train, X_train, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(data.X_test, X_test, rtol=2e-6, atol=1e-6)
    assert data.X_train.dtype == np.float32
    np.testing.assert_array_equal(data.y_test, np.where(test["y"] == "yes", 1, -1))
    assert data.y_test.dtype == np.int8


@pytest.mark.parametrize("missing", ["mean", "median", "most_frequent"])
def test_missing_values_are_filled_from_the_training_part(frame, here, missing):
    frame = frame.assign(age=frame["age"] // 10 * 10.0)
    frame.loc[[0, 3, 50], "age"] = np.nan
    frame.loc[[5, 55], "job"] = np.nan
    frame.to_csv("x.csv", index=False)
    data = load("x.csv", {"missing": missing, "test": "last 20", "categorical": "job"})
    train, test = halves(frame)
    numbers = make_pipeline(SimpleImputer(strategy=missing), StandardScaler())
    jobs = make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False)
    )
    columns = make_column_transformer((numbers, ["age"]), (jobs, ["job"]))
    np.testing.assert_allclose(data.X_train[:, :4], columns.fit_transform(train), atol=1e-6)
    np.testing.assert_allclose(data.X_test[:, :4], columns.transform(test), atol=1e-6)
    assert "missing values: 5 in age, job; filled in with " in "\n".join(data.decided)


def test_rows_with_missing_values_can_be_left_out(frame, here):
    frame.loc[[0, 50], "age"] = np.nan
    frame.loc[7, "y"] = None
    frame.to_csv("x.csv", index=False, na_rep="?")
    data = load("x.csv", {"missing": "drop", "test": "last 20", "scale": "none"})
    train, test = (part.dropna() for part in halves(frame))
    np.testing.assert_array_equal(data.X_train[:, 0], train["age"])
    np.testing.assert_array_equal(data.X_test[:, 0], test["age"])
    np.testing.assert_array_equal(data.y_train, np.where(train["y"] == "yes", 1, -1))
    assert "missing values: 3 in y, age; 3 rows with them left out" in data.decided


def test_a_constant_column_becomes_zero_and_huge_offsets_are_exact(here):
    rows = [f"0.1,{10**9 + k},{'ab'[k % 2]}" for k in range(6)]
    Path("x.csv").write_text("c,big,y\n" + "\n".join(rows) + "\n")
    data = load("x.csv", {"test": "last 2"})
    np.testing.assert_array_equal(data.X_train[:, 0], 0)
    np.testing.assert_allclose(data.X_train[:, 1], (np.arange(4) - 1.5) / np.std(range(4)))


@pytest.mark.parametrize("seed", [0, 7])
def test_the_split_is_stratified_like_scikit_learns(here, seed):
    sizes = {"a": 61, "b": 30, "c": 9}
    y = np.repeat(list(sizes), list(sizes.values()))
    frame = pd.DataFrame({"x": np.arange(100.0) ** 2, "y": np.random.default_rng(1).permutation(y)})
    frame.to_csv("x.csv", index=False)
    data = load("x.csv", {"split_seed": seed, "test_fraction": 0.25, "scale": "none"})
    _, expected_test = train_test_split(frame["y"], test_size=0.25, stratify=frame["y"])
    counts = expected_test.value_counts()
    assert data.n_test == len(expected_test) == 25
    for code, word in enumerate(sizes):
        assert abs(np.sum(data.y_test == code) - counts[word]) <= 1
    # Every row is in one of the parts, in the order of the file.
    both = np.concatenate([data.X_train[:, 0], data.X_test[:, 0]])
    np.testing.assert_array_equal(np.sort(both), frame["x"].astype(np.float32))
    assert (np.diff(data.X_test[:, 0]) > 0).all()


def test_the_split_depends_on_the_seed_alone(here):
    # The first outputs of Vigna's splitmix64.c from the seed 1234567.
    assert list(islice(split_mix(1234567), 2)) == [6457827717110365317, 3203168211198807973]
    rows = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(40))
    Path("x.csv").write_text("x,y\n" + rows)
    kept = {"scale": "none"}
    first, other = (load("x.csv", {**kept, "split_seed": seed}).X_test for seed in (0, 1))
    assert set(first[:, 0]) != set(other[:, 0])
    start = next(split_mix(0))
    order = sorted(range(40), key=dict(enumerate(islice(split_mix(start), 40))).__getitem__)
    stratified = [row for word in (0, 1) for row in [k for k in order if k % 2 == word][:6]]
    np.testing.assert_array_equal(first[:, 0], sorted(stratified))
    plain = load("x.csv", {**kept, "stratify": False})
    np.testing.assert_array_equal(plain.X_test[:, 0], sorted(order[:12]))


def split_mix(state):
    """SplitMix64 in plain Python."""
    mask = 2**64 - 1
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        yield z ^ (z >> 31)


def test_a_column_says_which_rows_are_the_test_part(frame, here):
    parts = np.where(np.arange(60) % 3 == 1, "Test", "train")
    frame.assign(part=parts).to_csv("x.csv", index=False)
    data = load("x.csv", {"split": "part", "target": "y", "scale": "none"})
    np.testing.assert_array_equal(data.X_test[:, 0], frame["age"][1::3])
    assert data.n_features == 2 + 3 + 2


@pytest.mark.parametrize(
    ("classes", "options", "positive", "labels"),
    [
        (["no", "yes"], {}, "yes", {-1, 1}),
        (["0", "1"], {}, "1", {-1, 1}),
        (["+1", "-1"], {}, "+1", {-1, 1}),
        (["False", "True"], {}, "True", {-1, 1}),
        (["a", "b"], {}, "a", {-1, 1}),  # the rarer one
        (["a", "b", "c"], {"positive": "c"}, "c", {-1, 1}),
        (["3", "5", "7.0"], {"positive": 7}, "7.0", {-1, 1}),
        (["3", "5", "7.0"], {}, None, {3, 5, 7}),
        (["c", "b", "a"], {}, None, {0, 1, 2}),
        (["yes", "no"], {"positive": "none"}, None, {0, 1}),
    ],
)
def test_which_class_is_positive(here, classes, options, positive, labels):
    y = [classes[0]] * 4 + [word for word in classes[1:] for _ in range(6)]
    rows = [f"{k * k},{word}" for k, word in enumerate(y)]
    Path("x.csv").write_text("x,y\n" + "\n".join(rows) + "\n")
    data = load("x.csv", {**options, "scale": "none"})
    assert set(data.y_train) == labels
    assert data.y_train.dtype == (np.int64 if positive is None else np.int8)
    for x, label in zip(data.X_train[:, 0], data.y_train, strict=True):
        word = y[round(x**0.5)]
        if positive is not None:
            assert label == (1 if word == positive else -1)
        elif labels == {0, 1, 2}:
            assert label == sorted(classes).index(word)


def test_many_categories_are_stored_as_sparse_rows(here):
    generator = np.random.default_rng(2)
    words = [f"w{k:03}" for k in generator.permutation(np.repeat(np.arange(100), 3))]
    frame = pd.DataFrame({"word": words, "x": generator.normal(size=300)})
    frame["y"] = np.arange(300) % 2
    frame.to_csv("x.csv", index=False)
    data = load("x.csv", {"test": "last 100"})
    train, test = frame.iloc[:200], frame.iloc[200:]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["word"]),
        (StandardScaler(), ["x"]),
        sparse_threshold=0,
    )
    np.testing.assert_allclose(data.X_train.toarray(), columns.fit_transform(train), atol=1e-6)
    np.testing.assert_allclose(data.X_test.toarray(), columns.transform(test), atol=1e-6)


def test_an_infinite_number_among_words_is_a_word(here):
    rows = [f"{word},{place % 2}" for place, word in enumerate(["inf", "red", "blue", "4"] * 3)]
    Path("x.csv").write_text("\n".join(["word,y", *rows]))
    assert load("x.csv", {"test": "last 4"}).X_train.shape == (8, 4)


def test_a_column_without_a_name_is_called_by_its_number(here):
    frame = pd.DataFrame({"": [1.0, 2.0] * 30, "b": np.arange(60.0), "target": ["n", "p"] * 30})
    frame.to_parquet("x.parquet", index=False)
    frame.to_csv("x.csv", index=False)
    Path("x.arff").write_text(
        "@relation r\n@attribute '' numeric\n@attribute b numeric\n@attribute target {n, p}\n"
        "@data\n" + frame.to_csv(index=False, header=False)
    )
    tables = [load(f"x.{ending}") for ending in ("csv", "parquet", "arff")]
    for data in tables:
        assert data.X_train.shape[1] == 2
        np.testing.assert_array_equal(data.X_train, tables[0].X_train)
    assert load("x.parquet", {"target": 1, "drop": ["target"]}).X_train.shape[1] == 1


def test_a_parquet_file_says_which_numbers_were_categories(here):
    frame = pd.DataFrame({"a": [1, 2, 5] * 20, "target": ["n", "p"] * 30})
    frame.astype({"a": "category"}).to_parquet("x.parquet")
    assert load("x.parquet").X_train.shape[1] == 3
    frame.to_parquet("y.parquet")
    assert load("y.parquet").X_train.shape[1] == 1


@pytest.mark.parametrize("name", ["subject", None])
def test_the_index_of_a_data_frame_is_no_feature(frame, here, name):
    # In the order of the classes, after which it would give them away.
    indexed = frame.sort_values("y").set_axis([f"s{k:02}" for k in range(60)]).rename_axis(name)
    indexed.to_parquet("x.parquet")
    data = load("x.parquet")
    column = name or "__index_level_0__"
    assert f"dropped columns: {column} (the index of the data frame)" in data.decided
    indexed.to_parquet("plain.parquet", index=False)
    np.testing.assert_array_equal(data.X_train, load("plain.parquet").X_train)
    # An index that is the target is asked for by name.
    frame.set_index("y").to_parquet("x.parquet")
    assert load("x.parquet", {"target": "y"}).decided[0].startswith("target: column 'y'")
    assert load("x.parquet", {"target": "job"}).n_features == 4


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("0,1,target", "5.1,3.5,setosa"),
        ("0,1,2", "5.1,3.5,setosa"),
        ("0,1,species", "5.1,3.5,setosa"),
        (",0,1,species", "7,5.1,3.5,setosa"),
        ("0,1", "5.1,setosa"),
        ("2001,2002,class", "5.1,3.5,setosa"),
    ],
)
def test_a_header_of_numbers(here, header, rows):
    other = rows.replace("5.1", "5.0").replace("setosa", "virginica")
    Path("x.csv").write_text(f"{header}\n" + f"{rows}\n{other}\n" * 20)
    data = load("x.csv")
    assert data.n_train + data.n_test == 21 + 19
    assert "+1 = 'virginica'" in data.decided[0]


@pytest.mark.parametrize("first", ["0,1,1", "1.2,0.3,y", "0,1,no", "1,0,no"])
def test_a_first_row_that_is_no_header(here, first):
    last = {"1": "0", "y": "n", "no": "yes"}[first.split(",")[2]]
    Path("x.csv").write_text(f"{first}\n1.5,0.5,{last}\n" * 20)
    assert load("x.csv").n_train + load("x.csv").n_test == 40


@pytest.mark.parametrize(
    ("words", "classes"),
    [
        (["7", "007"], 2),
        (["1.1", "1.10"], 2),
        ([str(2**53), str(2**53 + 1)], 2),
        (["1", "2", "02"], 3),
        (["1", "+1", "1.0", "1e0", "-1"], 2),
    ],
)
def test_distinct_classes_stay_apart(here, words, classes):
    rows = "".join(f"{k % 13},{words[k % len(words)]}\n" for k in range(90))
    Path("x.csv").write_text("x,y\n" + rows)
    assert len(np.unique(load("x.csv").y_train)) == classes
    if words[0].isdigit() and int(words[0]) > 2**50:
        pd.read_csv("x.csv").to_parquet("x.parquet")
        assert len(np.unique(load("x.parquet").y_train)) == classes


@pytest.mark.parametrize(
    ("text", "decimal", "value"),
    [
        ("1,234.5", ".", 1234.5),
        ("-12,345,678", ".", -12345678.0),
        ("0,25", ".", None),
        ("1,25", ".", None),
        ("0,125", ".", None),
        ("12,34,567", ".", None),
        ("1234,567", ".", None),
        ("1.234,5", ",", 1234.5),
        ("1.01", ",", None),
        ("$ 1'000", ".", 1000.0),
        ("1e3", ".", 1000.0),
        ("a", ".", None),
    ],
)
def test_a_sign_between_thousands_stands_nowhere_else(text, decimal, value):
    (word,) = cleaned(pa.array([text]), decimal).to_pylist()
    assert word is value is None or float(word) == value


def test_dates_are_named(here):
    rows = "".join(f"2020-01-{k % 9 + 1:02},{k},{k % 2}\n" for k in range(100))
    Path("x.csv").write_text("when,x,y\n" + rows)
    assert any("dates or identifiers" in line for line in load("x.csv").decided)


def test_texts_are_read_as_numbers_where_asked(here):
    rows = [f"{k % 5} %;1.00{k % 7},{k % 10};{k if k % 5 else '-'};{k % 3}\n" for k in range(1, 61)]
    Path("x.csv").write_text("share;price;size;y\n" + "".join(rows))
    hints = [line for line in load("x.csv").decided if "numbers" in line and "hint" in line]
    assert hints == [
        "hint: texts that look like numbers in share: set numeric = ['share']",
        "hint: texts that look like numbers in price: set numeric = ['price'], decimal = ','",
        "hint: numbers beside texts in size: if '-' means no value, add it to missing_words",
    ]
    options = {"numeric": ["share", "price", "size"], "decimal": ",", "missing": "drop"}
    data = load("x.csv", {**options, "scale": "none"})
    assert data.n_train + data.n_test == 48
    found = {tuple(row) for row in np.vstack([data.X_train, data.X_test]).tolist()}
    price = [np.float32(1000 + k % 7 + (k % 10) / 10).item() for k in range(61)]
    assert found == {(k % 5, price[k], k) for k in range(1, 61) if k % 5}


def test_training_rows_can_be_fewer(here):
    rows = [f"{k},{k % 3},{'abb'[k % 3]}\n" for k in range(300)]
    Path("x.csv").write_text("k,b,y\n" + "".join(rows))
    whole, some, fewer = (load("x.csv", {"scale": "none", "n_train": n}) for n in (210, 60, 30))
    np.testing.assert_array_equal(whole.X_train, load("x.csv", {"scale": "none"}).X_train)
    for data in (some, fewer):
        np.testing.assert_array_equal(data.X_test, whole.X_test)
        assert (data.y_train == 1).sum() == data.n_train / 3
        assert set(data.X_train[:, 0]) < set(whole.X_train[:, 0])
    assert (some.n_train, fewer.n_train) == (60, 30)
    assert set(fewer.X_train[:, 0]) < set(some.X_train[:, 0])
    assert some.decided[1].endswith(
        "; of 210 training rows 60 are drawn by seed 0 (60 training and 90 test rows)"
    )
    with pytest.raises(DataError, match="n_train = 211, but there are 210 training rows"):
        load("x.csv", {"n_train": 211})
