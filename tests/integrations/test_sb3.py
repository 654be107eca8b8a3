import re
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from stable_baselines3 import DDPG, DQN, PPO, HerReplayBuffer

import lapwing
from lapwing.envs.gridworld import GridWorld
from lapwing.errors import ConfigError
from lapwing.integrations.sb3 import LaplacianExtractor
from lapwing.laplacian.encoders import EncoderSpec
from lapwing.mazes import read_maze
from tests.support.representations import answer, assert_same, random_representation

WORLD = GridWorld(read_maze("TwoRoom"))
TABLES = {kind: WORLD.observations(kind) for kind in ("position", "index", "image")}
SPECS = {
    "position": EncoderSpec("fourier", (2,), 6, None, (16,), 8),
    "index": EncoderSpec("linear", (), 6, n_states=WORLD.n_states),
    "image": EncoderSpec("conv", TABLES["image"].shape[1:], 6),
}
REPRESENTATIONS = {kind: random_representation(spec) for kind, spec in SPECS.items()}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """The networks are small, and threads that wait for each other slow down all that runs beside them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=["position", "index", "image"])
def kind(request) -> str:
    return request.param


def extractor_of(representation, **kwargs) -> dict:
    """The `policy_kwargs` of a small policy on φ."""
    return {
        "features_extractor_class": LaplacianExtractor,
        "features_extractor_kwargs": {"representation": representation, **kwargs},
        "net_arch": [16],
    }


def dqn(kind: str, representation, *, policy_kwargs: dict | None = None, **kwargs) -> DQN:
    env = gymnasium.make("lapwing/TwoRoom-v0", observation=kind)
    chosen = extractor_of(representation, **kwargs) | (policy_kwargs or {})
    settings = {"learning_starts": 50, "train_freq": 4, "buffer_size": 500, "batch_size": 16, "seed": 0}
    return DQN("MlpPolicy", env, policy_kwargs=chosen, target_update_interval=100, device="cpu", **settings)


def features(model, observations: np.ndarray) -> np.ndarray:
    """What the policy's own path from observations to features gives."""
    network = model.q_net if isinstance(model, DQN) else model.policy
    tensor, _ = model.policy.obs_to_tensor(observations)
    with torch.no_grad():
        return network.extract_features(tensor, network.features_extractor).numpy()


def tensors(model) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.policy.state_dict().items()}


@pytest.mark.parametrize("what", ["eigenfunctions", "phi", "commute"])
def test_the_policy_sees_phi_of_what_the_environment_gives(kind, what):
    rep, table = REPRESENTATIONS[kind], TABLES[kind]
    expected = answer(rep, table, what)
    assert_same(features(dqn(kind, rep, what=what), table), expected)


@pytest.mark.parametrize("bumps_of", ["position", "image"])
def test_the_policy_sees_bumps(bumps_of):
    spec = EncoderSpec("bumps", SPECS[bumps_of].shape, 6, stages=((3, 8, 6),))
    rep, table = random_representation(spec), TABLES[bumps_of]
    assert_same(features(dqn(bumps_of, rep), table), answer(rep, table, "eigenfunctions"))


def test_the_observation_can_follow_phi(kind):
    rep, table = REPRESENTATIONS[kind], TABLES[kind]
    seen = {
        "position": lambda: table,
        "index": lambda: np.eye(WORLD.n_states),
        "image": lambda: table.transpose(0, 3, 1, 2).reshape(len(table), -1) / 255,
    }[kind]()
    model = dqn(kind, rep, append=True)
    found = features(model, table)
    assert found.shape == (len(table), 3 + seen.shape[1])
    assert model.q_net.features_extractor.features_dim == found.shape[1]
    assert_same(found[:, :3], rep.eigenfunctions(table)[:, 1:])
    np.testing.assert_allclose(found[:, 3:], seen, atol=1e-6)


def test_it_stays_as_it_is_while_the_policy_learns(kind):
    model = dqn(kind, REPRESENTATIONS[kind])
    before = tensors(model)
    model.learn(200)
    after = tensors(model)
    frozen = {name for name in before if "features_extractor" in name}
    assert frozen
    for name in frozen:
        assert torch.equal(before[name], after[name]), name
    learned = [name for name in before if name not in frozen and name.startswith("q_net.")]
    assert not all(torch.equal(before[name], after[name]) for name in learned), "the policy learned nothing"
    assert_same(features(model, TABLES[kind]), REPRESENTATIONS[kind].eigenfunctions(TABLES[kind])[:, 1:])


def test_the_optimiser_does_not_know_it(kind):
    model = dqn(kind, REPRESENTATIONS[kind], append=True)
    known = {tensor.data_ptr() for group in model.policy.optimizer.param_groups for tensor in group["params"]}
    assert known
    for network in (model.q_net, model.q_net_target):
        extractor = network.features_extractor
        assert list(extractor.parameters()) == []
        assert not {tensor.data_ptr() for tensor in extractor.state_dict().values()} & known


@pytest.mark.parametrize("share", [True, False])
def test_ppo_neither_fills_nor_trains_it(kind, share):
    """PPO fills each Linear and Conv2d of an extractor with orthogonal numbers; φ must hold none."""
    rep, table = REPRESENTATIONS[kind], TABLES[kind]
    env = gymnasium.make("lapwing/TwoRoom-v0", observation=kind)
    chosen = extractor_of(rep, append=True) | {"share_features_extractor": share}
    model = PPO("MlpPolicy", env, policy_kwargs=chosen, n_steps=32, batch_size=16, seed=0, device="cpu")
    before = tensors(model)
    model.learn(32)
    after = tensors(model)
    expected = rep.eigenfunctions(table)[:, 1:]
    policy = model.policy
    for extractor in (policy.pi_features_extractor, policy.vf_features_extractor):
        assert_same(extractor(as_sb3_gives_it(kind)).numpy()[:, :3], expected)
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed
    assert not any("features_extractor" in name for name in changed)


def as_sb3_gives_it(kind: str) -> torch.Tensor:
    table = TABLES[kind]
    if kind == "index":
        return torch.eye(WORLD.n_states)
    return torch.from_numpy(table if kind == "position" else table.transpose(0, 3, 1, 2) / np.float32(255))


def test_a_model_is_saved_and_loaded_with_the_path(kind, tmp_path):
    rep, table = REPRESENTATIONS[kind], TABLES[kind]
    rep.save(tmp_path / "phi.safetensors")
    model = dqn(kind, str(tmp_path / "phi.safetensors"), append=True)
    model.learn(100)
    model.save(tmp_path / "model")
    loaded = DQN.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(features(loaded, table), features(model, table))
    for one in table[:20]:
        assert loaded.predict(one, deterministic=True)[0] == model.predict(one, deterministic=True)[0]
    assert_same(features(loaded, table)[:, :3], rep.eigenfunctions(table)[:, 1:])


def test_images_of_floats_or_with_other_bounds_come_channel_last():
    rep, images = REPRESENTATIONS["image"], TABLES["image"]
    expected = rep.eigenfunctions(images)[:, 1:]
    floats = spaces.Box(0.0, 1.0, images.shape[1:], np.float32)
    assert_same(through(floats, rep, images / np.float32(255)), expected)
    assert_same(through(spaces.Box(0, 254, images.shape[1:], np.uint8), rep, images), expected)


def through(space: spaces.Box, representation, observations: np.ndarray) -> np.ndarray:
    """Features of a policy for this space."""
    policy = DQN.policy_aliases["MlpPolicy"](
        space, spaces.Discrete(4), lambda _: 1e-3, **extractor_of(representation)
    )
    tensor, _ = policy.obs_to_tensor(observations)
    return policy.q_net.extract_features(tensor, policy.q_net.features_extractor).numpy()


def test_images_that_were_not_scaled_are_refused():
    model = dqn("image", REPRESENTATIONS["image"], policy_kwargs={"normalize_images": False})
    with pytest.raises(ConfigError, match="normalize_images"):
        model.predict(TABLES["image"][0])


@pytest.mark.parametrize(
    ("kind", "space", "takes"),
    [
        ("position", spaces.Box(-1, 1, (3,)), r"\(2,\)"),
        ("position", spaces.Discrete(212), r"\(2,\)"),
        ("position", spaces.Dict({"seen": spaces.Box(-1, 1, (2,))}), "Dict.* wrap"),
        ("index", spaces.Discrete(211), r"Discrete\(212\)"),
        ("index", spaces.Discrete(212, start=1), r"Discrete\(212, start=1\)"),
        ("image", spaces.Box(0, 255, (3, 17, 16), np.uint8), r"17, 3\)"),
    ],
)
def test_a_space_that_does_not_fit_is_refused(kind, space, takes):
    with pytest.raises(ConfigError, match=takes):
        LaplacianExtractor(space, REPRESENTATIONS[kind])


def test_a_path_with_nothing_in_it_is_refused(tmp_path):
    with pytest.raises(lapwing.errors.LapwingError, match="nothing"):
        LaplacianExtractor(spaces.Box(-1, 1, (2,)), tmp_path / "nothing")


def test_hindsight_replay_gets_shaped_rewards():
    """SB3's own replay of goals that were reached by chance, in a real arena."""
    rep = REPRESENTATIONS["position"]
    env = gymnasium.make("lapwing/PointUMaze-v0", max_episode_steps=20)
    env = lapwing.LaplacianReward(env, rep, form="laplacian", scale=0.5)
    model = DDPG(
        "MultiInputPolicy",
        env,
        replay_buffer_class=HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4},
        policy_kwargs={"net_arch": [16]},
        learning_starts=40,
        batch_size=16,
        buffer_size=200,
        device="cpu",
        seed=0,
    )
    model.learn(80)
    drawn = model.replay_buffer.sample(64)
    at, goal = (drawn.next_observations[part].numpy() for part in ("achieved_goal", "desired_goal"))
    assert len(np.unique(goal, axis=0)) > 2
    expected = -0.5 * rep.distance(at, goal, "commute")
    np.testing.assert_allclose(drawn.rewards.numpy()[:, 0], expected, rtol=1e-3, atol=1e-3)


def test_without_its_libraries_the_extra_is_named():
    script = """
import sys
import scipy.stats  # which looks for torch among the modules when it is imported
for missing in ("torch", "stable_baselines3"):
    sys.modules[missing] = None
    try:
        import lapwing.integrations.sb3
    except ValueError as error:
        print(type(error).__name__, error)
    del sys.modules[missing]
"""
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for line, library in zip(told.stdout.splitlines(), ("PyTorch", "Stable-Baselines3"), strict=True):
        assert re.match(rf"ConfigError .*{library}.*lapwing\[sb3\]", line)
