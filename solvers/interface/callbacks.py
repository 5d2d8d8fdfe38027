"""scikit-learn's callbacks (``sklearn.callback``, from 1.9 on) as what watches a fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..models import Model
from .monitor import Monitor, Progress


def fit_with_callbacks(
    estimator: Any, fit: Callable[[Monitor], Any], X: Any, y: Any, sample_weight: Any
) -> Any:
    """``fit(monitor)``, with the estimator's callbacks called as scikit-learn says.

    The fit is a task, and so is what is done between two moments at least a tenth of a second
    apart at which the solver can be stopped. The number of these is not known beforehand.
    """
    from sklearn.callback import CallbackSupportMixin, with_callbacks

    data = {"estimator": estimator, "X": X, "y": y, "metadata": {"sample_weight": sample_weight}}

    @with_callbacks
    def watched(estimator: Any) -> Any:
        whole = CallbackSupportMixin._init_callback_context(estimator, max_subtasks=None)
        whole.call_on_fit_task_begin(**data)
        part: Any = None

        def begin() -> None:
            nonlocal part
            part = whole.subcontext("iterations").call_on_fit_task_begin(**data)

        def look(n_iter: int, build: Callable[[], Model]) -> bool:
            def fitted() -> dict[str, Any]:
                model = build()
                return model.attributes() | {"model_": model, "n_iter_": n_iter}

            stop = bool(part.call_on_fit_task_end(**data, reconstruction_attributes=fitted))
            begin()
            return stop

        begin()
        fit(Progress(look, every=0.1))
        for task in (part, whole):
            task.call_on_fit_task_end(**data, reconstruction_attributes=dict)
        return estimator

    return watched(estimator)
