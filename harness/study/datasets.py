"""Tasks that take a dataset: a registered one, an imported one, or the user's own files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import Field, PrivateAttr

from ...data_loaders import DataError, Source
from ...data_loaders.own.finding import find_own, is_own
from ...data_loaders.sources import unknown
from ..errors import StudyError
from .parts import Name, TaskEntry
from .select import dataset_names, find, imported_names, source_of

#: Options of the user's own data that are lists.
LIST_OPTIONS = ("categorical", "drop", "missing_words")


class DatasetTask(TaskEntry):
    """A task on a dataset.

    Attributes
    ----------
    dataset : str
        A registered or imported name, a path, or "file.py:name".
    dataset_params : dict
        Parameters of a registered dataset, or options of the user's own.
    """

    dataset: Name
    dataset_params: dict[str, Any] = Field(default_factory=dict)
    # Where a relative path begins. Not a field: no results folder is to name it.
    _folder: str | None = PrivateAttr(default=None)

    @property
    def folder(self) -> str | None:
        """Where the path of the user's file begins if it is relative; None: where we are."""
        return self._folder

    @property
    def runs_code(self) -> bool:
        """Whether loading the dataset may run code from outside the project."""
        return self.dataset.rpartition(":")[0].endswith(".py")

    @property
    def names(self) -> tuple[str, ...]:
        return self.label, self.dataset

    def completed(self, where: str = "", folder: str | None = None) -> Self:
        """With the dataset's name in its own spelling.

        Raises
        ------
        StudyError
            For an unknown dataset or a file that is not there, or one that does not take the
            parameters.
        """
        folder = self.folder if folder is None else folder
        dataset = checked_dataset(self.dataset, self.dataset_params, where, folder)
        return self.model_copy(update={"dataset": dataset}).placed(folder)

    def placed(self, folder: str | None) -> Self:
        if not is_users_file(self.dataset, folder):
            return self
        task = self.model_copy()
        task._folder = folder
        return task

    def portable(self, results: Path) -> dict[str, Any]:
        if not is_users_file(self.dataset, self.folder):
            return {}
        params = dict(self.dataset_params)
        test = params.get("test")
        if isinstance(test, str) and test and not test.startswith("last "):
            params["test"] = self._from(results, test)
        file, colon, name = self.dataset.rpartition(":")
        if colon and file.endswith(".py"):
            return {"dataset": f"{self._from(results, file)}:{name}", "dataset_params": params}
        return {"dataset": self._from(results, self.dataset), "dataset_params": params}

    def _from(self, results: Path, file: str) -> str:
        """The way to a file from the results folder."""
        path = Path(self.folder or ".").joinpath(Path(file).expanduser()).resolve()
        return os.path.relpath(path, results.resolve())


def registered_source(dataset: str) -> Source | None:
    """Where a registered dataset comes from; None for one of the user's own."""
    return source_of(dataset) if dataset in dataset_names() else None


def is_users_file(dataset: str, folder: str | None) -> bool:
    """Whether the name of a dataset means a file, a folder or code of the user."""
    if dataset in dataset_names() or dataset in imported_names():
        return False
    return is_own(dataset, folder)


def checked_dataset(
    name: str, params: Mapping[str, Any], where: str = "", folder: str | None = None
) -> str:
    """The name of a dataset in its own spelling; of the user's files no content is looked at.

    Parameters
    ----------
    name : str
    params : mapping
    where : str
        The place of the table in a file, "study.toml: task[1].", which messages begin with.
    folder : str, optional
        Where a relative path begins; the current folder by default.

    Raises
    ------
    StudyError
        If there is none, or it does not take the parameters.
    """
    known = dataset_names()
    found = find(name, known)
    place = f"{where.removesuffix('.')}: " if where else ""
    try:
        if found is not None:
            source_of(found).resolve(dict(params))
            return found
        if name in imported_names():
            if params:
                raise DataError(f"{name}: was imported with its options; remove dataset_params")
            return name
        if is_own(name, folder):
            find_own(name, params, folder)
            return name
    except DataError as error:
        raise StudyError(f"{place}{error}") from None
    place = f"{where}dataset: " if where else ""
    raise StudyError(f"{place}{unknown(name, [*known, *imported_names()])}")
