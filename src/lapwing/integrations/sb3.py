"""φ as the feature extractor of a Stable-Baselines3 policy. Needs the extra `sb3`."""

from pathlib import Path

import gymnasium
import numpy as np

from lapwing.errors import ConfigError
from lapwing.integrations.goals import as_representation
from lapwing.integrations.torch import EXTRA_MISSING, to_torch, tracing
from lapwing.laplacian.forward import What
from lapwing.laplacian.representation import Representation

try:
    import torch
    from stable_baselines3.common.preprocessing import get_flattened_obs_dim, is_image_space
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
except ImportError as error:
    raise ConfigError(EXTRA_MISSING.format("lapwing.sb3", "Stable-Baselines3")) from error


class LaplacianExtractor(BaseFeaturesExtractor):
    """φ in place of the first layers of a policy; it stays as it is while the policy learns.

    Stable-Baselines3 hands over indices as one-hot vectors, and images channel first, divided by 255 (leave
    `normalize_images` at True); both are taken as they come. Leave out `VecNormalize` with `norm_obs`, for φ
    knows observations as they were when it was learned.

    `model.save` keeps φ with the policy. Stable-Baselines3 pickles whatever is not plain text, so give the
    representation as a path: loading reads it again, for its shapes, from where it was. Load only models that
    you trust, for unpickling can run anything.

    Args:
        observation_space: of the environment; Stable-Baselines3 gives it.
        representation: one that `lapwing.learn` returns, or the path that `lapwing.load` would read.
        what: as for `lapwing.laplacian.forward.Forward`; `eigenfunctions` leaves the constant out.
        append: whether the observation, flattened, follows φ.

    Example:
        >>> import lapwing
        >>> from stable_baselines3 import DQN
        >>> rep = lapwing.learn("TwoRoom", transitions=20_000, dim=5, steps=100, hidden=(32,))
        >>> kwargs = {
        ...     "features_extractor_class": LaplacianExtractor,
        ...     "features_extractor_kwargs": {"representation": rep, "append": True},
        ... }
        >>> env = gymnasium.make("lapwing/TwoRoom-v0")
        >>> model = DQN("MlpPolicy", env, policy_kwargs=kwargs, buffer_size=100)
        >>> model.q_net.features_extractor.features_dim
        6
    """

    def __init__(
        self,
        observation_space: gymnasium.Space,
        representation: Representation | str | Path,
        what: What = "eigenfunctions",
        append: bool = False,
    ):
        learned = as_representation(representation)
        _check_space(observation_space, learned)
        phi = to_torch(learned, what)
        seen = get_flattened_obs_dim(observation_space) if append else 0
        super().__init__(observation_space, phi.dim + seen)
        self.phi, self.append = phi, append
        self.one_hot = isinstance(observation_space, gymnasium.spaces.Discrete)
        self.channels_first = not self.one_hot and observation_space.shape != learned.shape
        self.scaled = is_image_space(observation_space)
        whole = np.issubdtype(observation_space.dtype or np.float32, np.integer)
        self.unscaled = whole and len(learned.shape) == 3 and not self.scaled
        self.as_bytes = whole and learned.spec.shrinking is not None

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """What Stable-Baselines3 made of a batch of observations, to features."""
        seen = observations.flatten(1)
        if self.scaled and not tracing() and seen.max() > 1:
            raise ConfigError("images came as 0 … 255; leave normalize_images of the policy at True")
        if self.one_hot:
            observations = seen.argmax(1)
        elif self.channels_first:
            observations = observations.permute(0, 2, 3, 1)
        phi = self.phi(self._as_learned(observations))
        return torch.cat([phi, seen], dim=1) if self.append else phi

    def _as_learned(self, observations: torch.Tensor) -> torch.Tensor:
        """Images of bytes in [0, 1]; as bytes where they are averaged over pixels, for means are rounded."""
        if self.as_bytes:
            return (observations * 255 if self.scaled else observations).round().to(torch.uint8)
        return observations / 255 if self.unscaled else observations


def _check_space(space: gymnasium.Space, representation: Representation) -> None:
    """Refuse a space whose observations φ does not take."""
    shape, n_states = representation.shape, representation.spec.n_states
    if isinstance(space, gymnasium.spaces.Dict):
        raise ConfigError(
            "this extractor takes no Dict observations; wrap the environment in "
            "lapwing.LaplacianObservation, which takes an observation_key, and use MultiInputPolicy"
        )
    if isinstance(space, gymnasium.spaces.Discrete) and space.start != 0:
        raise ConfigError(
            f"Stable-Baselines3 takes states that count from 0, and these are {space}; wrap the environment "
            "so that they do"
        )
    if isinstance(space, gymnasium.spaces.Discrete):
        fits = shape == () and space.n == n_states
    else:
        turned = (*shape[-1:], *shape[:-1]) if len(shape) == 3 else shape
        fits = isinstance(space, gymnasium.spaces.Box) and shape != () and space.shape in (shape, turned)
    if not fits:
        takes = f"a Box of shape {shape}" if shape else f"Discrete({n_states})"
        raise ConfigError(
            f"the representation of {representation.config.get('target', '?')} takes {takes}, and the "
            f"environment gives {space}; learn one from observations of this environment"
        )
