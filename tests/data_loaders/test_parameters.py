"""Parameters of datasets: what is allowed, what is kept, where it is cached."""

import numpy as np
import pytest

from marginbench.data_loaders import DataError, find, load, verify
from marginbench.data_loaders.content import Content, Part
from marginbench.data_loaders.parameters import one_of
from marginbench.data_loaders.transforms import images

CLASSES = np.arange(12) % 3


def classes(tiny, **kwargs):
    """A source of three classes; nothing is read from files."""
    X = np.eye(12, dtype=np.float32) * 255
    made = Content(Part(X, CLASSES), Part(X, CLASSES))
    return tiny(
        files=(),
        read=lambda files, params: made,
        transform=images,
        parameters={"positive": 2},
        check_parameters=one_of("tiny", positive=(0, 1, 2, "none")),
        **kwargs,
    )


def test_the_class_that_is_set_against_the_rest_can_be_chosen(tiny):
    source = classes(tiny)
    default, zero = load(source), load(source, {"positive": 0})
    assert default.params == {"positive": 2}
    assert zero.params == {"positive": 0}
    np.testing.assert_array_equal(default.y_train, np.where(CLASSES == 2, 1, -1))
    np.testing.assert_array_equal(zero.y_train, np.where(CLASSES == 0, 1, -1))
    np.testing.assert_array_equal(zero.X_train, np.eye(12))
    every = load(source, {"positive": "none"})
    np.testing.assert_array_equal(every.y_test, CLASSES)
    assert every.y_test.dtype == np.int64
    assert len({default.fingerprint, zero.fingerprint, every.fingerprint}) == 3


def test_each_choice_has_its_own_file(tiny):
    source = classes(tiny)
    load(source, {"positive": 0})
    assert verify(source, {"positive": 0}).state == "ok"
    assert verify(source, {"positive": 0.0}).path == verify(source, {"positive": 0}).path
    assert verify(source).state == "missing"
    assert verify(source).path == verify(source, {"positive": 2}).path


@pytest.mark.parametrize("value", [2, 2.0, np.int64(2), np.float32(2)])
def test_equal_numbers_are_one(tiny, value):
    (kept,) = classes(tiny).resolve({"positive": value}).values()
    assert kept == 2
    assert type(kept) is int


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (3, ""),
        (-1, ""),
        (1.5, ""),
        (True, ""),
        (None, ""),
        (float("nan"), ""),
        ("2", ""),
        ([2], ""),
        (np.array([1, 2]), ""),
        ("None", " (did you mean 'none'?)"),
    ],
)
def test_other_values_are_refused(tiny, value, hint):
    with pytest.raises(DataError) as caught:
        load(classes(tiny), {"positive": value})
    assert str(caught.value) == (
        f"tiny: positive must be one of 0, 1, 2, 'none', got {value!r}{hint}"
    )


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("cod-rna", {"scale": "minmax"}),
        ("mnist", {"positive": 8}),
        ("fashion-mnist", {"positive": 6}),
        ("covtype-sample", {"scale": "unit"}),
        ("covtype", {"positive": 2, "scale": "unit"}),
        ("susy", {"scale": "none"}),
        ("cifar10", {"positive": 0, "scale": "norm"}),
    ],
)
def test_defaults_are_valid_and_unknown_ones_are_named(name, params):
    source = find(name)
    assert source.resolve({}) == params
    for key in params:
        with pytest.raises(DataError, match=f"^{name}: {key} must be one of .*, got 'x'$"):
            source.resolve({key: "x"})
    with pytest.raises(DataError, match=f"^{name}: unknown parameter 'sclae'"):
        source.resolve({"sclae": "none"})
