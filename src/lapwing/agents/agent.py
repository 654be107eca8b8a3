"""Trained agents and their files: Q with its greedy policy, or a policy with continuous actions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lapwing.errors import ConfigError
from lapwing.laplacian.batches import checked_batch, embed_batch
from lapwing.laplacian.encoders import MLP, Encoder, EncoderSpec, encoder_skeleton
from lapwing.laplacian.model_files import (
    filled,
    fitting_description,
    model_file,
    named_arrays,
    read_model,
    write_model,
)


@dataclass(frozen=True, eq=False, repr=False)
class Agent:
    """What `lapwing.train` returns and `lapwing.load_agent` reads."""

    q: Encoder
    spec: EncoderSpec
    config: dict[str, Any] = field(default_factory=dict)
    """Target and settings."""
    first_state: int = 0
    """The number of the first state, where states are numbers."""
    first_action: int = 0
    """The number of the first action."""

    def __repr__(self) -> str:
        return f"Agent({self.config.get('target', '?')}: {self.spec.dim} actions, {self.spec.name} network)"

    def values(self, observations) -> np.ndarray:
        """Q(s, ·) of one observation or of a batch."""
        seen = np.asarray(observations)
        return _outputs(self.q, self.spec, seen - self.first_state if self.first_state else seen)

    def act(self, observations) -> Any:
        """The greedy action, or one for each observation of a batch."""
        actions = self.first_action + self.values(observations).argmax(axis=-1)
        return int(actions) if actions.ndim == 0 else actions

    def save(self, path: str | Path) -> None:
        """Write one .safetensors file, checked by SHA-256 when it is loaded."""
        described = {"config": self.config, "encoder": self.spec.as_json()}
        described |= {"first_state": self.first_state, "first_action": self.first_action}
        write_model(path, "agent", named_arrays(self.q, "q"), described)


@dataclass(frozen=True, eq=False, repr=False)
class ControlAgent:
    """What `lapwing.train` returns for an arena: a policy with continuous actions."""

    actor: MLP
    spec: EncoderSpec
    config: dict[str, Any] = field(default_factory=dict)
    """Target, arena and settings."""

    def __repr__(self) -> str:
        target = self.config.get("target", "?")
        return f"ControlAgent({target}: {self.spec.dim} numbers in an action, {self.spec.name} network)"

    def act(self, observations) -> np.ndarray:
        """The action, numbers in [-1, 1], for one observation or for each of a batch.

        Observations are states, or dictionaries of the Gymnasium environments, with `observation`.
        """
        return np.tanh(_outputs(self.actor, self.spec, _states_in(observations)))

    def save(self, path: str | Path) -> None:
        """Write one .safetensors file, checked by SHA-256 when it is loaded."""
        described = {"config": self.config, "encoder": self.spec.as_json()}
        write_model(path, "control agent", named_arrays(self.actor, "actor"), described)


def _outputs(network: Encoder, spec: EncoderSpec, observations: Any) -> np.ndarray:
    """What the network gives for one observation, or for each of a batch."""
    array = np.asarray(observations)
    single = array.shape == spec.shape
    if not single and array.shape[1:] != spec.shape:
        raise ConfigError(f"observations have shape {array.shape}; this agent takes {spec.shape}")
    outputs = embed_batch(network, checked_batch(array[None] if single else array, spec.shape, spec.n_states))
    return outputs[0] if single else outputs


def _states_in(observations: Any) -> Any:
    """The state in what an arena's environment gives, or what is a state already."""
    if not isinstance(observations, Mapping):
        return observations
    if "observation" not in observations:
        raise ConfigError(f"observations have the parts {', '.join(observations)}; observation is missing")
    return observations["observation"]


def load_agent(path: str | Path) -> Agent | ControlAgent:
    """Read what `Agent.save` wrote, or the agent in a run folder. Nothing in the file is executed."""
    path = model_file(path, "agent.safetensors", missing="trained agent; lapwing train makes one")
    tensors, manifest = read_model(path, "agent", "control agent")
    with fitting_description(path):
        spec = EncoderSpec.from_json(manifest["encoder"])
        if manifest["kind"] == "control agent":
            actor = filled(encoder_skeleton(spec), tensors, "actor", path)
            return ControlAgent(actor, spec, dict(manifest["config"]))
        return Agent(
            filled(encoder_skeleton(spec), tensors, "q", path),
            spec,
            dict(manifest["config"]),
            int(manifest["first_state"]),
            int(manifest["first_action"]),
        )
