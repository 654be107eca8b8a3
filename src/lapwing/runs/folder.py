"""A run folder: configuration, metrics, checkpoints and results of one learned representation.

config.json holds the configuration and never changes, but that settings which trials chose are added to it
once, after what was collected has been saved. result.json is written last, so its presence means that the run
is finished (figures can be redrawn from the rest). Anything missing in between is computed again,
bit-identically. Every file carries a digest. Folders of format 1, which lapwing 0.1.0 wrote, have none in
their JSON files: they can be loaded and evaluated, but not resumed.
"""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from lapwing import storage
from lapwing._version import __version__
from lapwing.errors import (
    CheckpointError,
    ConfigError,
    DatasetError,
    LapwingError,
    LapwingWarning,
    StorageError,
    warn,
)
from lapwing.laplacian.model_files import FORMAT, check_format, filled, named_arrays
from lapwing.laplacian.representation import Representation, load_representation
from lapwing.runs.formats import (
    FOLDER_FORMAT,
    WITHOUT_DIGESTS,
    check_described,
    check_fields,
    check_result,
    row_format,
)
from lapwing.runs.taken import CONFIG, RESULT, check_exclusive, check_there, claims_to_be_ours, taken
from lapwing.settings.checks import SavedSettings

SECONDS_BETWEEN_CHECKPOINTS = 2.0
SHARE_OF_CHECKPOINTS = 0.05
"""How much of the time may go into writing them, where they are large."""
KEPT_CHECKPOINTS = 2
FIGURES = (
    *("spectrum", "learning", "eigenfunctions", "distances", "embedding", "returns", "reward", "policy"),
    *("success", "goal", "paths", "strip", "film", "landmarks", "plan", "options", "diffusion"),
)
"""The pictures that a run may have, each as .png and .svg, or as .gif."""

Settings = TypeVar("Settings", bound=SavedSettings)


class RunFolder:
    """One run's folder, held by one process at a time; also the `Checkpoints` of its training."""

    def __init__(self, path: Path):
        """Name the folder; `opened` creates or enters it."""
        self.path = path
        self._next_due = time.monotonic() + SECONDS_BETWEEN_CHECKPOINTS

    @property
    def _config(self) -> Path:
        return self.path / CONFIG

    @property
    def experience(self) -> Path:
        """What was collected from an environment."""
        return self.path / "experience.npz"

    @property
    def representation(self) -> Path:
        """The result of learning."""
        return self.path / "representation.safetensors"

    @property
    def agent(self) -> Path:
        """The result of training an agent."""
        return self.path / "agent.safetensors"

    @property
    def reacher(self) -> Path:
        """The result of `lapwing reach`."""
        return self.path / "reacher.safetensors"

    @property
    def options(self) -> Path:
        """The result of `lapwing options`."""
        return self.path / "options.safetensors"

    @property
    def page(self) -> Path:
        """What `lapwing explore` writes."""
        return self.path / "explorer.html"

    @property
    def replaced(self) -> Path:
        """Where a finished run is until the one that replaces it is finished too."""
        return self.path / ".replaced"

    @property
    def figures(self) -> Path:
        """The folder of the pictures."""
        return self.path / "figures"

    @property
    def begun(self) -> bool:
        """Whether there is a run."""
        return storage.is_file(self._config)

    @property
    def finished(self) -> bool:
        """Whether everything has been done."""
        return storage.is_file(self.path / RESULT)

    @contextmanager
    def opened(self, config: dict[str, Any], *, overwrite: bool, resume: bool) -> Iterator[bool]:
        """Hold the folder for a run of `config`, and say whether one that was begun is resumed.

        Nothing in the folder is changed: `begin` does that, when there is something to put in its place.
        """
        check_exclusive(overwrite=overwrite, resume=resume)
        self._holds_a_run()  # refuses a folder that is not ours before anything is put there
        new = storage.make_folder(self.path)
        with storage.lock(self.path), self._removed_on_failure(new):
            there = self._holds_a_run()
            if there and not (overwrite or resume):
                raise taken(self.path)
            if there and resume:
                self._check_same(config)
            if there and overwrite:
                self._learned_inside()  # refuses one that is not ours before there is work to lose
            if resume and not there:
                warn(f"{self.path} holds no run to resume: starting one", LapwingWarning)
            storage.remove_leftovers(self.path)
            yield there and resume

    @contextmanager
    def _removed_on_failure(self, new: list[Path]) -> Iterator[None]:
        """Take folders that were made for this run away again if the run never began."""
        try:
            yield
        except BaseException:
            with suppress(StorageError):
                if not self.begun:
                    storage.remove_folders(new)
            raise

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from writing to the folder."""
        with storage.lock(self.path):
            yield

    def begin(self, config: dict[str, Any]) -> None:
        """Start a run in place of what is there; a finished one is set aside until this one is."""
        self._set_aside()
        self._clear()
        versions = {"format": FOLDER_FORMAT, "version": __version__}
        try:
            storage.write_checked_json(self._config, versions | config)
        except StorageError:
            self._put_back()
            raise

    def add_to_config(self, more: dict[str, Any]) -> None:
        """Add what was found out since the run was begun, such as the settings that were tried and chosen."""
        storage.write_checked_json(self._config, storage.read_checked_json(self._config) | more)

    @contextmanager
    def withdrawn_if_refused(self) -> Iterator[None]:
        """Take a run that was just begun away again if it turns out that it cannot be done.

        The run that it was to replace is put back. What is killed or interrupted stays, to be resumed.
        """
        try:
            yield
        except (ConfigError, DatasetError):
            self._clear()
            storage.remove(self._config)
            self._put_back()
            raise

    def config(self) -> dict[str, Any]:
        """What config.json says; a folder that is no run, or of another version, is refused."""
        check_there(self.path)
        if not self.begun:
            raise ConfigError(f"{self.path} is not a run folder: it has no {CONFIG}")
        config = storage.read_json(self._config)
        if not (isinstance(config, dict) and config.get("format") == WITHOUT_DIGESTS):
            check_format(self._config, config, FOLDER_FORMAT)
            config = storage.read_checked_json(self._config)
        check_described(self._config, config)
        return config

    def settings(self, kind: type[Settings]) -> Settings:
        """The settings that the run was begun with."""
        try:
            return kind.from_json(self.config()["settings"])
        except (ConfigError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{self._config} holds settings that cannot be used ({error})") from error

    @property
    def _has_digests(self) -> bool:
        return not self.begun or self.config()["format"] != WITHOUT_DIGESTS

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result, which marks the run as finished; drop the checkpoints and the run before."""
        storage.write_checked_json(self.path / "result.json", result)
        for path in self._checkpoints():
            storage.remove(path)
        storage.remove_tree(self.replaced)

    def result(self) -> dict[str, Any]:
        """The result of a finished run; one that such a run cannot have is refused."""
        path = self.path / "result.json"
        try:
            result = (storage.read_checked_json if self._has_digests else storage.read_json)(path)
            check_result(path, result, self.config())
        except CheckpointError as error:
            remedy = "delete it, and the command that made the run makes it again with --resume"
            raise CheckpointError(f"{error}; {remedy}") from error
        return result

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of metrics.jsonl."""
        path = self.path / "metrics.jsonl"
        rows = storage.read_json_lines(path, digests=self._has_digests)
        if self.begun:
            described = row_format(self.config())
            for row in rows:
                check_fields(path, row, described)
        return rows

    def record(self, row: dict[str, Any]) -> None:
        """Add a row to metrics.jsonl."""
        storage.append_json_line(self.path / "metrics.jsonl", row)

    def keep(self, state: Any, step: int, seconds: float, *, last: bool) -> None:
        """Write a checkpoint if the last one is some seconds old; keep the one before it too."""
        began = time.monotonic()
        if not last and began < self._next_due:
            return
        manifest = {"format": FORMAT, "version": __version__, "step": step, "seconds": seconds}
        path = self.path / f"checkpoint-{step:09d}.safetensors"
        storage.write_tensors(path, named_arrays(state, "state"), manifest)
        for old in self._checkpoints()[:-KEPT_CHECKPOINTS]:
            storage.remove(old)
        ended = time.monotonic()
        self._next_due = ended + max(SECONDS_BETWEEN_CHECKPOINTS, (ended - began) / SHARE_OF_CHECKPOINTS)

    def restore(self, like: Any) -> tuple[Any, int, float] | None:
        """The newest checkpoint that is whole; a damaged one is named and passed over."""
        for path in reversed(self._checkpoints()):
            try:
                tensors, manifest = storage.read_tensors(path)
                check_format(path, manifest)
                state = filled(like, tensors, "state", path)
            except CheckpointError as error:
                warn(f"{error}; using the previous checkpoint", LapwingWarning)
                continue
            self._cut_metrics(manifest["step"])
            return state, manifest["step"], manifest["seconds"]
        self._cut_metrics(0)
        return None

    def _checkpoints(self) -> list[Path]:
        names = storage.names_in(self.path)
        return [self.path / name for name in names if re.fullmatch(r"checkpoint-\d{9}\.safetensors", name)]

    def _cut_metrics(self, step: int) -> None:
        """Drop the rows after `step`: they will be recorded again."""
        path = self.path / "metrics.jsonl"
        storage.write_json_lines(path, [r for r in self.metrics() if r["step"] <= step])

    def _holds_a_run(self) -> bool:
        """Whether a run was begun here; anything else that is here is not ours to touch."""
        try:
            if self.begun and claims_to_be_ours(storage.read_json(self._config)):
                self.config()
                return True
        except CheckpointError as error:
            raise CheckpointError(f"{error}; delete the folder yourself, or choose another --out") from error
        foreign = [name for name in storage.names_in(self.path) if not name.startswith(".")]
        if foreign and self._belongs_to_an_agent():  # a user's notes may be in it
            foreign = [name for name in foreign if self.path / name in (self._config, *self._owned())]
        if foreign:
            raise ConfigError(
                f"{self.path} is not empty and not a run folder (it holds {foreign[0]}); choose another --out"
            )
        return False

    def _belongs_to_an_agent(self) -> bool:
        """Whether this is where the run of an agent keeps the run of its φ."""
        if self.path.name != "representation":
            return False
        with suppress(LapwingError):
            return RunFolder(self.path.parent).config().get("kind") == "agent"
        return False

    def _check_same(self, config: dict[str, Any]) -> None:
        there = self.config()
        if there["format"] == WITHOUT_DIGESTS:
            raise CheckpointError(
                f"{self._config} has no digest, so nothing tells whether it was edited; resume "
                f"with lapwing {there['version']}, or start again with --overwrite"
            )
        if there["version"] != __version__:
            raise CheckpointError(
                f"{self.path} was begun by lapwing {there['version']}; lapwing {__version__} cannot "
                "resume it bit-identically: use that version, or start again with --overwrite"
            )
        for name, value in config.items():
            if there.get(name) != value:
                raise ConfigError(_difference(self.path, name, there.get(name), value))

    def _owned(self) -> list[Path]:
        """A run's own files but for config.json, the mark of a finished one first."""
        owned = [self.path / "result.json", self.representation, self.agent, *self._checkpoints()]
        owned += [self.path / "metrics.jsonl", self.experience, self.reacher, self.options, self.page]
        suffixes = (".png", ".svg", ".gif")
        return owned + [self.figures / f"{name}{suffix}" for name in FIGURES for suffix in suffixes]

    def _learned_inside(self) -> "RunFolder | None":
        """The run of an agent's φ, if there is one."""
        inner = RunFolder(self.path / "representation")
        return inner if inner.begun and inner._holds_a_run() else None

    def _files(self) -> list[Path]:
        """A run's own files, with those of its φ; the mark of a finished one first, config.json last."""
        inner = self._learned_inside()
        return [*self._owned(), *([*inner._owned(), inner._config] if inner else []), self._config]

    def _set_aside(self) -> None:
        """Move a finished run's files; its config.json last, which says that all have been moved."""
        kept = RunFolder(self.replaced)
        half_moved = storage.is_folder(kept.path) and not kept.begun
        if not self.begun or not (self.finished or half_moved):
            return
        if kept.begun:  # of two finished runs the later one is kept
            storage.remove_tree(kept.path)
        inner = self._learned_inside()
        *files, config = self._files()
        for path in files:
            storage.move(path, kept.path / path.relative_to(self.path))
        storage.remove_folders([self.figures])  # left empty, it would pass for somebody else's
        if inner is not None:
            storage.remove_folders([inner.figures, inner.path])
        storage.move(config, kept.path / config.relative_to(self.path))

    def _put_back(self) -> None:
        """Move a run that was set aside to where it was; its config.json first, the mark of its end last."""
        kept = RunFolder(self.replaced)
        for path in reversed(kept._files()) if kept.begun else ():
            storage.move(path, self.path / path.relative_to(kept.path))
        storage.remove_tree(kept.path)

    def _clear(self) -> None:
        """Remove a run's own files, those of the run of its φ among them, and nothing else."""
        inner = self._learned_inside()
        for path in self._owned():
            storage.remove(path)
        if inner is not None:
            inner._clear()
            storage.remove(inner._config)
            storage.remove_folders([inner.figures, inner.path])


def load(path: str | Path) -> Representation:
    """The representation in a run folder, or in a file that `Representation.save` wrote."""
    path = Path(path)
    if not storage.is_folder(path):
        return load_representation(path)
    folder = RunFolder(path)
    is_agent = folder.config().get("kind") == "agent"
    if is_agent and folder.finished and not folder.representation.is_file():
        raise ConfigError(f"{path} holds an agent whose reward uses no φ; lapwing.load_agent reads it")
    if not folder.representation.is_file():
        command = "train" if is_agent else "learn"
        raise ConfigError(f"{path} holds an unfinished run; resume it with lapwing {command} … --resume")
    return load_representation(folder.representation)


def _difference(path: Path, name: str, there: Any, here: Any) -> str:
    """Which setting a resumed run would change."""
    if isinstance(there, dict) and isinstance(here, dict):
        name = next(key for key in here if there.get(key) != here[key])
        there, here = there.get(name), here[name]
    return (
        f"{path} was begun with {name} = {there!r}, not {here!r}; resume with the same settings, "
        "or start again with --overwrite"
    )
