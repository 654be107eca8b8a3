"""The finite MDP of a maze and its Gymnasium environment, against moves made on the text itself."""

import inspect
from collections import deque

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import lapwing  # noqa: F401 (registers the environments)
from lapwing.envs.grid_walks import random_walks
from lapwing.envs.gridworld import AGENT, GOAL, GROUND, WALL, GridWorld, GridWorldEnv
from lapwing.errors import ConfigError, LapwingWarning
from lapwing.mazes import MAZES, Maze, parse_maze, read_maze

NAMES = ("OneRoom", "TwoRoom", "HardMaze", "FourRoom")
KINDS = ("index", "position", "image")
IDS = [*(f"lapwing/{name}-v0" for name in MAZES), "lapwing/Maze-v0"]
# L-shaped, open at the border, with a dead end: what the built-in mazes have not.
CROOKED = parse_maze("..#G\n.#..\n...#\n", name="Crooked")


def world_of(name: str, *, stay: bool = False) -> GridWorld:
    return GridWorld(CROOKED if name == "Crooked" else read_maze(name), stay)


def make(env_id: str, **kwargs) -> gymnasium.Env:
    if env_id == "lapwing/Maze-v0":
        kwargs["maze"] = CROOKED
    return gymnasium.make(env_id, **kwargs)


def moved(maze: Maze, cell: tuple[int, int], action: int) -> tuple[int, int]:
    """One move on the characters of the text: up, down, left, right, stay."""
    row, column = cell
    row += (-1, 1, 0, 0, 0)[action]
    column += (0, 0, -1, 1, 0)[action]
    inside = 0 <= row < len(maze.lines) and 0 <= column < len(maze.lines[0])
    return (row, column) if inside and maze.lines[row][column] != "#" else cell


def fewest_steps(maze: Maze, goal: tuple[int, int]) -> dict[tuple[int, int], int]:
    """Breadth first from the goal; moves can be undone, so the way back is as long."""
    steps, frontier = {goal: 0}, deque([goal])
    while frontier:
        cell = frontier.popleft()
        for action in range(4):
            there = moved(maze, cell, action)
            if there not in steps:
                steps[there] = steps[cell] + 1
                frontier.append(there)
    return steps


class TestTables:
    @pytest.mark.parametrize("name", [*NAMES, "Crooked"])
    def test_states_are_the_floor_in_reading_order(self, name):
        world = world_of(name)
        by_hand = [
            (r, c) for r, line in enumerate(world.maze.lines) for c, mark in enumerate(line) if mark != "#"
        ]
        assert [tuple(cell) for cell in world.cells.tolist()] == by_hand
        assert world.n_states == len(by_hand)
        for state, cell in enumerate(by_hand):
            assert world.state_at[cell] == state
        assert (world.state_at >= 0).sum() == len(by_hand)

    @pytest.mark.parametrize("stay", [False, True])
    @pytest.mark.parametrize("name", [*NAMES, "Crooked"])
    def test_next_state_is_a_move_on_the_text(self, name, stay):
        world = world_of(name, stay=stay)
        assert world.next_state.shape == (world.n_states, 5 if stay else 4)
        for state, cell in enumerate(world.cells.tolist()):
            for action in range(world.n_actions):
                there = world.cells[world.next_state[state, action]]
                assert tuple(there) == moved(world.maze, tuple(cell), action)

    def test_goal_state(self):
        world = world_of("HardMaze")
        assert tuple(world.cells[world.goal_state]) == (10, 10)
        np.testing.assert_array_equal(world.observations("index"), np.arange(world.n_states, dtype=np.int32))
        assert world_of("FourRoom").goal_state is None

    @pytest.mark.parametrize("stay", [False, True])
    @pytest.mark.parametrize("name", [*NAMES, "Crooked"])
    def test_uniform_policy_is_doubly_stochastic_and_reversible(self, name, stay):
        P = world_of(name, stay=stay).transition_matrix().toarray()
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(P.sum(axis=0), 1, rtol=1e-12)
        np.testing.assert_allclose(P, P.T, atol=1e-15)

    def test_transition_matrix_of_a_policy(self):
        world = world_of("Crooked", stay=True)
        policy = np.random.default_rng(0).dirichlet(np.ones(5), world.n_states)
        expected = np.zeros((world.n_states, world.n_states))
        for state, cell in enumerate(world.cells.tolist()):
            for action in range(5):
                expected[state, world.state_at[moved(world.maze, tuple(cell), action)]] += policy[
                    state, action
                ]
        np.testing.assert_allclose(world.transition_matrix(policy).toarray(), expected, atol=1e-15)

    @pytest.mark.parametrize("stay", [False, True])
    @pytest.mark.parametrize("name", [*NAMES, "Crooked"])
    def test_steps_to_is_breadth_first_search(self, name, stay):
        world = world_of(name, stay=stay)
        for goal in (0, world.n_states // 2, world.n_states - 1):
            steps = fewest_steps(world.maze, tuple(world.cells[goal].tolist()))
            expected = [steps[tuple(cell)] for cell in world.cells.tolist()]
            np.testing.assert_array_equal(world.steps_to(goal), expected)


def test_images_of_more_bytes_than_any_machine_has():
    plain = parse_maze("\n".join(["." * 1_000] * 1_000), name="plain")
    with pytest.raises(ConfigError, match="image"):
        GridWorld(plain).observations("image")


class TestObservations:
    @pytest.mark.parametrize("name", [*NAMES, "Crooked"])
    def test_position_of_every_cell(self, name):
        world = world_of(name)
        table, size = world.observations("position"), np.array(world.maze.floor.shape)
        assert table.dtype == np.float32
        np.testing.assert_allclose(table, 2 * world.cells / (size - 1) - 1, atol=1e-7)

    def test_position_in_a_corridor(self):
        table = GridWorld(parse_maze(".....\n", name="corridor")).observations("position")
        assert np.isfinite(table).all()
        np.testing.assert_allclose(table[:, 1], [-1, -0.5, 0, 0.5, 1])

    @pytest.mark.parametrize("name", ["FourRoom", "Crooked"])
    def test_image_pixel_by_pixel(self, name):
        world = world_of(name)
        images = world.observations("image")
        assert images.dtype == np.uint8
        assert images.shape == (world.n_states, len(world.maze.lines), len(world.maze.lines[0]), 3)
        for state in (0, world.n_states // 2, world.n_states - 1):
            for row, line in enumerate(world.maze.lines):
                for column, mark in enumerate(line):
                    colour = WALL if mark == "#" else GROUND
                    if (row, column) == tuple(world.cells[state]):
                        colour = AGENT
                    assert tuple(images[state, row, column]) == colour

    def test_unknown_kind_gets_the_nearest(self):
        with pytest.raises(ConfigError, match=r"'positions'.* position\?"):
            # Beneath the type checker, which in the tests would be the first to object.
            inspect.unwrap(GridWorld.observations)(world_of("FourRoom"), "positions")


@pytest.fixture(scope="module")
def walk():
    """`walk(policy, seed)`: the states of a thousand episodes of fifty moves through the crooked maze."""
    compiled = jax.jit(random_walks, static_argnames=("episodes", "length"))
    table = jnp.asarray(world_of("Crooked", stay=True).next_state)

    def walk(policy=None, seed=0):
        walked = compiled(table, policy, episodes=1_000, length=50, key=jax.random.key(seed))
        states, actions = map(np.asarray, walked)
        assert actions.dtype == np.uint8
        np.testing.assert_array_equal(np.asarray(table)[states[:, :-1], actions], states[:, 1:])
        return states

    return walk


class TestWalks:
    def test_starts_are_uniform(self, walk):
        size = world_of("Crooked").n_states
        assert walk().shape == (1_000, 51)
        counts = np.bincount(walk()[:, 0], minlength=size)
        expected = 1_000 / size
        assert np.sum((counts - expected) ** 2 / expected) < chi_square_limit(size - 1)

    def test_uniform_walks_follow_the_transition_matrix(self, walk):
        assert_follows(walk(), world_of("Crooked", stay=True).transition_matrix().toarray())

    def test_walks_follow_a_policy(self, walk):
        world = world_of("Crooked", stay=True)
        policy = np.random.default_rng(1).dirichlet(np.ones(5), world.n_states)
        policy[0] = [0, 0.25, 0, 0.5, 0.25]
        assert_follows(walk(jnp.asarray(policy)), world.transition_matrix(policy).toarray())

    def test_same_key_same_walk_and_other_keys_differ(self, walk):
        np.testing.assert_array_equal(walk(), walk())
        assert (walk() != walk(seed=1)).any(axis=1).mean() > 0.99


def chi_square_limit(freedom: int) -> float:
    """What a right table exceeds once in ten thousand seeds."""
    return float(chi2.isf(1e-4, freedom))


def assert_follows(walks: np.ndarray, P: np.ndarray) -> None:
    counts = np.zeros_like(P)
    np.add.at(counts, (walks[:, :-1].ravel(), walks[:, 1:].ravel()), 1)
    assert (counts[P == 0] == 0).all()
    expected = counts.sum(axis=1, keepdims=True) * P
    inside = P > 0
    assert expected[inside].min() > 5
    statistic = np.sum((counts - expected)[inside] ** 2 / expected[inside])
    assert statistic < chi_square_limit(int(np.sum(inside.sum(axis=1) - 1)))


@settings(max_examples=100)
@given(
    st.integers(1, 5).flatmap(
        lambda width: st.lists(st.text("#..", min_size=width, max_size=width), min_size=1, max_size=5)
    ),
    st.lists(st.integers(0, 4), max_size=20),
)
@pytest.mark.filterwarnings("ignore:maze random")
def test_any_maze_moves_like_its_text(lines, actions):
    maze = parse_maze("\n".join(["." + "#" * (len(lines[0]) - 1), *lines]), name="random")
    env = GridWorldEnv(maze, observation="position", stay=True)
    _, info = env.reset(seed=1)
    height, width = maze.floor.shape
    for action in actions:
        cell = moved(maze, info["cell"], action)
        observation, reward, *_, info = env.step(action)
        assert info["cell"] == cell
        assert reward == 0
        expected = [2 * cell[0] / max(height - 1, 1) - 1, 2 * cell[1] / max(width - 1, 1) - 1]
        np.testing.assert_allclose(observation, expected, atol=1e-6)


class TestEnv:
    def test_all_ids_are_tested_here(self):
        elsewhere = ("lapwing/Point", "lapwing/Ant", "lapwing/Plane")
        ours = [name for name in gymnasium.registry if name.startswith("lapwing/")]
        assert sorted(IDS) == sorted(name for name in ours if not name.startswith(elsewhere))

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("env_id", IDS)
    def test_check_env_has_nothing_to_say(self, env_id, kind):
        """Warnings are errors here, so the checker's advice would fail the test as well."""
        check_env(make(env_id, observation=kind, render_mode="rgb_array").unwrapped)

    @pytest.mark.parametrize("kind", KINDS)
    def test_observations_are_the_table(self, kind):
        env = make("lapwing/TwoRoom-v0", observation=kind)
        table = world_of("TwoRoom").observations(kind)
        observation, info = env.reset(seed=3)
        for _ in range(40):
            np.testing.assert_array_equal(observation, table[info["state"]])
            assert observation in env.observation_space
            observation, _, _, _, info = env.step(env.action_space.sample())

    @pytest.mark.parametrize("kind", ["position", "image"])
    def test_an_observation_is_the_callers_to_write_on(self, kind):
        env = make("lapwing/TwoRoom-v0", observation=kind)
        first, _ = env.reset(options={"cell": (1, 1)})
        kept = first.copy()
        first[...] = 0
        again, _ = env.reset(options={"cell": (1, 1)})
        np.testing.assert_array_equal(again, kept)

    @pytest.mark.parametrize("env_id", IDS)
    def test_fifty_steps_and_no_termination(self, env_id):
        env = make(env_id)
        env.reset(seed=0)
        ends = [env.step(env.action_space.sample())[2:4] for _ in range(50)]
        assert not any(terminated for terminated, _ in ends)
        assert [truncated for _, truncated in ends] == [False] * 49 + [True]

    def test_rewards_on_the_way_to_the_goal_and_waiting_there(self):
        env = make("lapwing/HardMaze-v0")
        env.reset(options={"cell": (11, 11)})
        steps = [env.step(action)[1:4] for action in (0, 2, 2, 0, 1, 0)]
        # Up, left onto the goal at (10,10), into the walls left and above it, off it, back on.
        assert steps == [(reward, False, False) for reward in (-1, 0, 0, 0, -1, 0)]

    def test_no_goal_no_reward(self):
        env = make("lapwing/FourRoom-v0")
        env.reset(seed=0)
        assert {env.step(env.action_space.sample())[1] for _ in range(50)} == {0.0}

    def test_another_goal(self):
        env = make("lapwing/HardMaze-v0", goal=(1, 1))
        env.reset(options={"cell": (1, 2)})
        assert env.step(2)[1] == 0
        assert env.step(3)[1] == -1
        env.reset(options={"cell": (10, 11)})
        assert env.step(2)[1] == -1, "the maze's own goal still counts"
        env = make("lapwing/FourRoom-v0", goal=(1, 1))
        env.reset(options={"cell": (1, 1)})
        assert env.step(0)[1] == 0

    @pytest.mark.parametrize(
        ("cell", "words"), [((0, 0), "wall"), ((16, 3), "outside HardMaze of 16 x 16"), ((-1, 3), "outside")]
    )
    def test_a_goal_or_a_start_in_a_wall_or_outside(self, cell, words):
        with pytest.raises(ConfigError, match=rf"goal \({cell[0]},{cell[1]}\).*{words}"):
            make("lapwing/HardMaze-v0", goal=cell)
        with pytest.raises(ConfigError, match=rf"start \({cell[0]},{cell[1]}\).*{words}"):
            make("lapwing/HardMaze-v0").reset(options={"cell": cell})

    def test_a_goal_or_a_start_that_cannot_be_reached(self):
        """The drawing shows floor there, so it is not called a wall; the wall beside it is."""
        with pytest.warns(LapwingWarning, match=r"\(0,3\), \(1,3\)"):
            maze = parse_maze("..#.\n..#.\n", name="mine")
        with pytest.raises(ConfigError, match=r"goal \(0,3\) cannot be reached"):
            GridWorldEnv(maze, goal=(0, 3))
        with pytest.raises(ConfigError, match=r"start \(1,3\) cannot be reached"):
            GridWorldEnv(maze).reset(options={"cell": (1, 3)})
        with pytest.raises(ConfigError, match=r"goal \(0,2\) is a wall"):
            GridWorldEnv(maze, goal=(0, 2))

    def test_reset_at_a_cell(self):
        env = make("lapwing/FourRoom-v0", observation="index")
        observation, info = env.reset(options={"cell": (3, 7)})
        assert info["cell"] == (3, 7)
        assert tuple(world_of("FourRoom").cells[observation]) == (3, 7)

    def test_starts_are_uniform_and_seeded(self):
        env = make("lapwing/Maze-v0", observation="index")
        size = env.observation_space.n
        starts = [env.reset(seed=0)[0], *(env.reset()[0] for _ in range(size * 500 - 1))]
        counts = np.bincount(starts, minlength=size)
        assert np.sum((counts - 500) ** 2 / 500) < chi_square_limit(size - 1)
        assert starts[:50] == [env.reset(seed=0)[0], *(env.reset()[0] for _ in range(49))]
        assert starts[:50] != [env.reset(seed=1)[0], *(env.reset()[0] for _ in range(49))]

    def test_render(self):
        env = make("lapwing/HardMaze-v0", render_mode="rgb_array")
        env.reset(options={"cell": (1, 2)})
        frame = env.render()
        assert frame.dtype == np.uint8
        assert frame.shape == (256, 256, 3)
        cells = frame.reshape(16, 16, 16, 16, 3)
        assert (cells == cells[:, :1, :, :1]).all(), "a cell is one colour"
        for row, line in enumerate(world_of("HardMaze").maze.lines):
            for column, mark in enumerate(line):
                colour = {"#": WALL, ".": GROUND, "G": GOAL}[mark] if (row, column) != (1, 2) else AGENT
                assert tuple(frame[16 * row + 7, 16 * column + 7]) == colour
        env.reset(options={"cell": (10, 10)})
        assert tuple(env.render()[160, 160]) == AGENT, "over the goal"
        env = GridWorldEnv("FourRoom")
        env.reset(seed=0)
        assert env.render() is None

    @pytest.mark.parametrize("stay", [False, True])
    def test_action_space(self, stay):
        assert make("lapwing/OneRoom-v0", stay=stay).action_space == gymnasium.spaces.Discrete(4 + stay)

    def test_a_maze_file(self, tmp_path):
        path = tmp_path / "mine.txt"
        path.write_text("###\n#G#\n#.#\n###\n")
        env = gymnasium.make("lapwing/Maze-v0", maze=path, observation="index")
        assert env.observation_space == gymnasium.spaces.Discrete(2)
        env.reset(options={"cell": (2, 1)})
        assert env.step(0)[:2] == (0, 0.0)
