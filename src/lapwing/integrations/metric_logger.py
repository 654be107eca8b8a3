"""Training metrics in TensorBoard and Weights & Biases, through one callback."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lapwing.errors import ConfigError
from lapwing.progress import OnProgress

Log = Callable[[str, int, dict[str, float]], None]
"""Called with (phase, step, metrics)."""


@contextmanager
def metric_logger(
    *,
    tensorboard: str | Path | None = None,
    wandb: Mapping[str, Any] | None = None,
    also: OnProgress | None = None,
) -> Iterator[OnProgress]:
    """A callback for `on_progress` of `lapwing.learn` and `lapwing.train` that logs the metrics.

    A metric is named `PHASE/NAME`, as `learning/loss`, and stands at its step.

    Args:
        tensorboard: a folder for TensorBoard's event file (extra `tensorboard`).
        wandb: the keywords of `wandb.init` (extra `wandb`), such as `{"project": "phi"}`.
        also: another callback that is called with all of it, such as `lapwing.progress_bar()` gives.

    Example:
        with lapwing.metric_logger(tensorboard="runs/tensorboard/four_room") as log:
            rep = lapwing.learn("FourRoom", on_progress=log)
    """
    if tensorboard is None and wandb is None:
        raise ConfigError("metric_logger needs tensorboard, a folder, or wandb, the keywords of wandb.init")
    with ExitStack() as stack:
        logs: list[Log] = []
        if tensorboard is not None:
            logs.append(stack.enter_context(_to_tensorboard(Path(tensorboard))))
        if wandb is not None:
            logs.append(stack.enter_context(_to_wandb(wandb)))

        def on_progress(phase: str, done: int, total: int, metrics: dict[str, float]) -> None:
            if also is not None:
                also(phase, done, total, metrics)
            for log in logs if metrics else ():
                log(phase, int(metrics.get("step", done)), metrics)

        yield on_progress


@contextmanager
def _to_tensorboard(folder: Path) -> Iterator[Log]:
    writer = _module("tensorboard.summary", "tensorboard").Writer(str(folder))

    def log(phase: str, step: int, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            if name != "step":
                writer.add_scalar(f"{phase}/{name}", value, step)

    try:
        yield log
    finally:
        writer.close()


@contextmanager
def _to_wandb(options: Mapping[str, Any]) -> Iterator[Log]:
    module, phases = _module("wandb", "wandb"), set()
    try:
        run = module.init(**options)
    except module.errors.Error as error:
        raise ConfigError(
            f"wandb did not begin a run: {error}; log in with wandb login, or set WANDB_MODE=offline"
        ) from error

    def log(phase: str, step: int, metrics: dict[str, float]) -> None:
        if phase not in phases:  # each phase counts its own steps
            phases.add(phase)
            run.define_metric(f"{phase}/*", step_metric=f"{phase}/step")
        run.log({f"{phase}/{name}": value for name, value in (metrics | {"step": step}).items()})

    try:
        yield log
    finally:
        run.finish()


def _module(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(
            f"{extra} is not installed; install lapwing with its extra {extra}, from a clone: "
            f"pip install '.[{extra}]'"
        ) from error
