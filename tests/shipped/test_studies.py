"""The studies that ship with the project."""

from marginbench.harness.study.toml import load_study, study_names


def test_every_shipped_study_is_valid():
    assert len(study_names()) >= 21
    for name in study_names():
        study = load_study(name)
        assert study.name == name
        assert study.title
        assert study.description.strip()
