"""Options from tables or from networks, with the interface that the wrappers use, and their files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.data.action_spaces import Bounds
from lapwing.errors import ConfigError
from lapwing.laplacian.batches import checked_batch, embed_batch
from lapwing.laplacian.encoders import Encoder, EncoderSpec, encoder_skeleton
from lapwing.laplacian.model_files import (
    filled,
    fitting_description,
    model_file,
    named_arrays,
    read_model,
    write_model,
)
from lapwing.laplacian.representation import Representation, representation_from, representation_parts
from lapwing.options.eigenoptions import eigenoption_name
from lapwing.options.purpose import PLACE, EigenPurpose, seen_in
from lapwing.options.table import OptionTable

KIND = "set of options"


@dataclass(frozen=True, eq=False, repr=False)
class MazeOptions:
    """Options of a finite maze; `LaplacianOptions` gives them to any agent."""

    table: OptionTable
    observations: np.ndarray
    """What is seen in each state."""
    n_actions: int
    longest: int
    """An option is cut after so many steps."""
    config: dict[str, Any] = field(default_factory=dict)
    """Target and settings."""
    bounds = None
    """Actions are numbers."""
    key = None
    """Observations have no parts."""

    def __repr__(self) -> str:
        return f"MazeOptions({self.config.get('target', '?')}: {len(self)} options)"

    def __len__(self) -> int:
        return len(self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """Such as `f2+`, up the second eigenfunction."""
        return self.table.names

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation."""
        return self.observations.shape[1:]

    def begins(self, observation: Any) -> np.ndarray:
        """Which options may be chosen here."""
        return self.table.begins[:, self._state(observation)]

    def act(self, option: int, observation: Any) -> int:
        """The action of an option, counted from 0."""
        return int(self.table.actions[option, self._state(observation)])

    def stops(self, option: int, observation: Any) -> bool:
        """Whether an option ends here."""
        return bool(self.table.stops[option, self._state(observation)])

    @cached_property
    def _index(self) -> dict[bytes, int]:
        return {row.tobytes(): state for state, row in enumerate(self.observations)}

    def _state(self, observation: Any) -> int:
        key = np.asarray(observation, self.observations.dtype).tobytes()
        if key not in self._index:
            raise ConfigError(
                f"the observation {str(observation)[:60]} is none of the {len(self.observations)} states "
                "that these options know; wrap the maze that they were made in, with the same observations"
            )
        return self._index[key]

    def save(self, path: str | Path) -> None:
        """Write one .safetensors file, checked by SHA-256 when it is loaded."""
        arrays = {name: getattr(self.table, name) for name in ("actions", "begins", "stops")}
        _write(path, "table", self, arrays | {"observations": self.observations}, {})


@dataclass(frozen=True, eq=False, repr=False)
class NetworkOptions:
    """Options whose policies are networks, for states that cannot be listed.

    Where actions are discrete a network gives Q, and the action of its largest value is taken; where they are
    continuous it is the actor μ of DDPG.
    """

    networks: tuple[Encoder, ...]
    spec: EncoderSpec
    representation: Representation
    climbs: tuple[tuple[int, int], ...]
    """Of each option: the eigenfunction, counted from 1, and 1 to climb it or -1 to descend."""
    levels: np.ndarray
    """An option ends where its eigenfunction, times the sign, is at least this."""
    longest: int
    """An option is cut after so many steps."""
    first_state: int = 0
    """The number of the first state, where states are numbers."""
    config: dict[str, Any] = field(default_factory=dict)
    """Target and settings."""
    bounds: Bounds | None = None
    """Of continuous actions; None where they are discrete."""
    key: str | None = None
    """Which part of Dict observations the networks see."""

    def __repr__(self) -> str:
        return f"NetworkOptions({self.config.get('target', '?')}: {len(self)} options)"

    def __len__(self) -> int:
        return len(self.climbs)

    @property
    def names(self) -> tuple[str, ...]:
        """Such as `f2+`, up the second eigenfunction."""
        return tuple(eigenoption_name(function, sign) for function, sign in self.climbs)

    @property
    def n_actions(self) -> int:
        """How many discrete actions the environment has: none where they are continuous."""
        return self.spec.dim if self.bounds is None else 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one observation."""
        return self.spec.shape

    def values(self, option: int, observations: np.ndarray) -> np.ndarray:
        """What the network of one option gives for a batch of observations, (batch, actions)."""
        batch = checked_batch(self._numbered(observations), self.shape, self.spec.n_states)
        return np.asarray(embed_batch(self.networks[option], batch))

    def height(self, option: int, observation: Any) -> float:
        """±f of what an option climbs."""
        seen = self._numbered(observation)
        if seen.shape != self.shape:
            raise ConfigError(
                f"these options take one observation of shape {self.shape}, not {seen.shape}; give the "
                "environment's own"
            )
        return float(self._purposes[option].value(seen_in(seen, self.representation.shape)))

    def begins(self, observation: Any) -> np.ndarray:
        """Which options may be chosen here."""
        return np.array([not self.stops(option, observation) for option in range(len(self))])

    def act(self, option: int, observation: Any) -> Any:
        """The action of an option: a number counted from 0, or a vector where actions are continuous."""
        values = self.values(option, np.asarray(observation)[None])[0]
        return int(values.argmax()) if self.bounds is None else self.bounds.scaled(np.tanh(values))

    def stops(self, option: int, observation: Any) -> bool:
        """Whether an option ends here."""
        return bool(self.height(option, observation) >= self.levels[option])

    @cached_property
    def _purposes(self) -> list[EigenPurpose]:
        return [EigenPurpose(self.representation, function, sign) for function, sign in self.climbs]

    def _numbered(self, observations: Any) -> np.ndarray:
        """States that are numbers, counted from 0."""
        seen = np.asarray(observations)
        return np.asarray(seen - self.first_state) if self.first_state else seen

    def save(self, path: str | Path) -> None:
        """Write one .safetensors file, checked by SHA-256 when it is loaded."""
        phi, described = representation_parts(self.representation, "phi.")
        arrays = {"levels": self.levels} | phi
        for number, network in enumerate(self.networks):
            arrays |= named_arrays(network, f"q{number}")
        if self.bounds is not None:
            arrays |= {"action_low": self.bounds.low, "action_high": self.bounds.high}
        more = {
            "spec": self.spec.as_json(),
            "first_state": self.first_state,
            "key": self.key,
            "climbs": self.climbs,
            "representation": described,
        }
        _write(path, "network", self, arrays, more)


OptionSet = MazeOptions | NetworkOptions


def _write(path: str | Path, form: str, options: OptionSet, arrays: dict, more: dict[str, Any]) -> None:
    described = {
        "form": form,
        "names": list(options.names),
        "n_actions": options.n_actions,
        "longest": options.longest,
        "config": options.config,
    }
    contiguous = {name: np.array(array, order="C") for name, array in arrays.items()}
    write_model(path, KIND, contiguous, described | more)


def load_options(path: str | Path) -> OptionSet:
    """Read what `save` wrote, or the options in a run folder. Nothing in the file is executed."""
    path = model_file(path, "options.safetensors", missing="options; lapwing options makes some")
    tensors, manifest = read_model(path, KIND)
    with fitting_description(path):
        return _read(tensors, manifest, path)


def _read(tensors: dict[str, np.ndarray], manifest: dict[str, Any], path: Path) -> OptionSet:
    longest = int(manifest["longest"])
    if manifest["form"] == "table":
        names = tuple(map(str, manifest["names"]))
        table = OptionTable(tensors["actions"], tensors["begins"], tensors["stops"], names)
        options = MazeOptions(
            table, tensors["observations"], int(manifest["n_actions"]), longest, dict(manifest["config"])
        )
        _check_table(options)
        return options
    spec = EncoderSpec.from_json(manifest["spec"])
    climbs = tuple((int(function), int(sign)) for function, sign in manifest["climbs"])
    networks = tuple(filled(encoder_skeleton(spec), tensors, f"q{i}", path) for i in range(len(climbs)))
    representation = representation_from(tensors, manifest["representation"], path, "phi.")
    if representation.shape not in (spec.shape, PLACE):
        raise ValueError("φ does not see what its networks see")
    levels, first = tensors["levels"], int(manifest["first_state"])
    _check_lengths(climbs, levels)
    bounds, config = _bounds(tensors, spec), dict(manifest["config"])
    return NetworkOptions(
        networks, spec, representation, climbs, levels, longest, first, config, bounds, manifest.get("key")
    )


def _bounds(tensors: dict[str, np.ndarray], spec: EncoderSpec) -> Bounds | None:
    """Of continuous actions; files of discrete ones have none."""
    if "action_low" not in tensors:
        return None
    bounds = Bounds(tensors["action_low"], tensors["action_high"])
    if any(bound.shape != (spec.dim,) or not np.isfinite(bound).all() for bound in bounds):
        raise ValueError("the bounds are not those of its actions")
    return bounds


def _check_table(options: MazeOptions) -> None:
    shape = len(options), len(options.observations)
    actions = options.table.actions
    if (
        any(array.shape != shape for array in options.table[:3])
        or not np.isin(actions, np.arange(options.n_actions)).all()
    ):
        raise ValueError("its tables are not those of its options")
    _check_lengths(options.names, actions)


def _check_lengths(options: Sequence[Any], rows: np.ndarray) -> None:
    if len(options) != len(rows):
        raise ValueError(f"{len(options)} options with {len(rows)} rows")


def as_options(options: Any) -> OptionSet:
    """Options, or those in a file or a run folder."""
    if isinstance(options, MazeOptions | NetworkOptions):
        return options
    if not isinstance(options, str | Path):
        raise ConfigError(
            f"options must be what lapwing.discover_options returns, or a path, not {type(options).__name__}"
        )
    return load_options(options)
