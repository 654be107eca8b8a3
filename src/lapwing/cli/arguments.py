"""The commands of lapwing and their options, as documented dataclasses: `--help` is generated from them.

Nothing heavy is imported here, so that `--help` is fast.
"""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from lapwing.settings.agents import AgentSettings, ControlSettings
from lapwing.settings.checks import chosen_by_lapwing
from lapwing.settings.learn import LearnSettings
from lapwing.settings.options import OptionsSettings
from lapwing.settings.reach import ReachSettings


@dataclass(frozen=True)
class RunOptions:
    """Output options of the commands that create a run."""

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: a new one in runs/)")
    ] = None
    """The run folder."""
    overwrite: bool = False
    """Replace the run in the folder."""
    resume: bool = False
    """Resume the interrupted run in the folder."""
    log: Annotated[
        tuple[Literal["tensorboard", "wandb"], ...],
        tyro.conf.arg(metavar="{tensorboard,wandb}", help_behavior_hint=""),
    ] = ()
    """Log metrics to TensorBoard (in runs/tensorboard), to Weights & Biases, or to both."""
    json: bool = False
    """Print the measures as a single line of JSON on standard output."""

    def __post_init__(self) -> None:
        """Skip validation: `settings` validates later, so that the parser does not wrap its messages."""

    def settings(self) -> Any:
        """The settings among the options, validated."""
        (kind,) = (base for base in type(self).__bases__ if base is not RunOptions)
        return kind(**{field.name: getattr(self, field.name) for field in dataclasses.fields(kind)})


@dataclass(frozen=True)
class Learn(RunOptions, LearnSettings):
    """Learn a representation, evaluate it and draw it.

    lapwing learn FourRoom: 10⁶ random steps, 20 eigenfunctions, in seconds.

    lapwing learn my_maze.txt --dim 11: your own maze, # wall, . floor, G goal.

    lapwing learn data.npz --out runs/mine: recorded experience, .hdf5 too; minari:NAME, a Minari data set.

    lapwing learn ogbench:pointmaze-giant-navigate: an OGBench data set, regenerated if there is no file.

    lapwing learn gym:CartPole-v1 --transitions 100000: a Gymnasium environment.

    lapwing learn gym:my_env.py:MyEnv: your own environment, a class or a function in my_env.py.

    lapwing learn PlaneFourRoom: continuous positions, compared with a fine discretisation.

    lapwing learn PointUMaze --preset paper-control: a robot in a MuJoCo maze.

    lapwing learn FourRoom --preset paper: the recipe of Wu, Tucker and Nachum (2019).
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """A maze (OneRoom, TwoRoom, HardMaze, FourRoom, those of ALLO's benchmark such as GridRoom-16 and
    GridMaze-32, or a text file), the same with continuous positions (PlaneFourRoom, or Plane:my_maze.txt), an
    arena (PointUMaze, PointHookMaze, AntUMaze, AntHookMaze, or Point:my_maze.txt), gym:ENV_ID,
    gym:FILE.py:NAME, an .npz or .hdf5 file or a folder of data, minari:NAME, or ogbench:NAME."""
    hosts: Annotated[
        str | None, tyro.conf.arg(metavar="auto|ADDRESS:PORT,NUMBER/COUNT", help_behavior_hint="")
    ] = None
    """Learn from a folder of shards as one process of a job: auto, from SLURM or Open MPI; or the address of
    process 0, the index of this process from 0, and the number of processes."""


@dataclass(frozen=True)
class Data:
    """Summarise a data set and what lapwing would do with it, or split it into shards.

    lapwing data inspect walks.npz: episodes, lengths, shapes, ranges, NaN, and whether states repeat.

    lapwing data inspect minari:point/umaze-v0 --observation-key observation: an entry of Dict observations.

    lapwing data shard walks --shards 8: split a folder of episodes for several processes to learn from.
    """

    action: Annotated[
        tyro.conf.Positional[Literal["inspect", "shard"]], tyro.conf.arg(metavar="inspect|shard")
    ]
    """What to do with the data."""
    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")]
    """An .npz or .hdf5 file, a folder of lapwing.save_episodes, minari:NAME, or ogbench:NAME."""
    observation_key: str | None = None
    """Entry of Dict observations to use."""
    keys: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=ARRAY ...", help_behavior_hint="")] = ()
    """Names of the arrays in a file, if they differ from lapwing's: observations=obs ends=done."""
    shards: Annotated[int | None, tyro.conf.arg(help_behavior_hint="(with shard)")] = None
    """Number of shards."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: FILE-shards)")] = (
        None
    )
    """Output folder of the shards."""
    json: bool = False
    """Print the summary as one line of JSON on standard output."""


@dataclass(frozen=True)
class Evaluate:
    """Evaluate a finished run again, against the exact spectrum if it is known, and redraw it.

    lapwing evaluate runs/FourRoom: a representation.

    lapwing evaluate runs/HardMaze-mix: an agent; its figures are redrawn.

    lapwing evaluate runs/PlaneHardMaze-reach: a reacher, with the same goals.

    lapwing evaluate runs/FourRoom-solve: the policy of a reward, compared with the optimum.

    lapwing evaluate runs/MyEnv --env gym:my_env.py:MyEnv: a run whose collected data is missing. lapwing
    never executes a file that a run folder names; only one that you name here is executed.
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of a finished run."""
    env: Annotated[str | None, tyro.conf.arg(metavar="gym:FILE.py:CLASS", help_behavior_hint="")] = None
    """The run's environment, to collect from it again if experience.npz is missing."""
    json: bool = False
    """Print the measures as one line of JSON on standard output."""


@dataclass(frozen=True)
class Audit:
    """Audit shaped rewards before any agent is trained: where they mislead, and the lookahead they need.

    lapwing audit HardMaze: every filter, with φ from the exact eigenvectors of the chain.

    lapwing audit runs/HardMaze: with a learned φ.

    lapwing audit HardMaze runs/a runs/b --goal 1,1: side by side, for another goal.
    """

    targets: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="MAZE|RUN ...", help_behavior_hint="")
    ] = ()
    """A maze, runs of lapwing learn, or several of them for one maze."""
    goal: Annotated[
        str | None, tyro.conf.arg(metavar="ROW,COLUMN", help_behavior_hint="(default: the maze's own)")
    ] = None
    """Goal cell."""
    gamma: float = 0.98
    """The agent's discount factor."""
    episode_length: int = 50
    """Steps per episode."""
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: runs/MAZE-audit)")
    ] = None
    """Output folder of the figure."""
    json: bool = False
    """Print the audits as one line of JSON on standard output."""


@dataclass(frozen=True)
class Solve:
    """Solve any reward in a maze: value, moves and a path, compared with the optimum.

    lapwing solve GridRoom-16 --reward goal=2,2: φ is learned first (seconds), then the reward is solved.

    lapwing solve runs/FourRoom --reward "goal=1,1 -1=7,4": with the φ of a run; several cells.

    lapwing solve FourRoom --reward map.txt: a map like the maze, . for 0, 1 to 9, a to i for -1 to -9.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MAZE|RUN", help_behavior_hint="")] = (
        ""
    )
    """A maze, or a run of lapwing learn in a maze."""
    reward: Annotated[
        str | None, tyro.conf.arg(metavar="goal=ROW,COLUMN|FILE", help_behavior_hint="(required)")
    ] = None
    """Cells and their rewards on arrival, goal= for 1; or a painted map of the maze."""
    gamma: float = 0.98
    """Discount factor."""
    dim: Annotated[int | None, chosen_by_lapwing("50, or all states if fewer")] = None
    """Number of eigenfunctions to learn."""
    start: Annotated[
        str | None,
        tyro.conf.arg(metavar="ROW,COLUMN", help_behavior_hint="(default: the cell of lowest value)"),
    ] = None
    """First cell of the path."""
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: runs/MAZE-solve)")
    ] = None
    """Output folder of the policy and the figure."""
    overwrite: bool = False
    """Replace the policy in the folder."""
    json: bool = False
    """Print the result as one line of JSON on standard output."""


@dataclass(frozen=True)
class Explore:
    """Write an interactive HTML page for a representation, and open it.

    lapwing explore runs/FourRoom: eigenfunctions, spectrum, distances, painted rewards, embedding.

    lapwing explore runs/TwoRoom-reach --no-open --out reach.html: with a reacher's plans; do not open it.
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """Folder of a finished run of lapwing learn or reach, or a saved representation."""
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: RUN/explorer.html)")
    ] = None
    """Output file of the page."""
    open: bool = True
    """Whether to open it in a browser."""
    json: bool = False
    """Print the page's path and size as one line of JSON on standard output."""


@dataclass(frozen=True)
class Train(RunOptions, AgentSettings):
    """Train a DQN agent on a shaped reward, with a learning curve and an animation of its policy.

    lapwing train HardMaze: learns φ first (seconds), then shapes the reward by its distance as a potential.

    lapwing train HardMaze --reward mix --preset paper: the paper's φ and reward.

    lapwing train TwoRoom --reward sparse --steps 10000: without φ, for comparison.

    lapwing train HardMaze --representation runs/HardMaze: with a φ learned before.

    lapwing train gym:CartPole-v1 --gamma 0.99: any environment with discrete actions and its own reward.

    lapwing train PointUMaze --reward mix: DDPG in a MuJoCo maze; lapwing train PointUMaze --help lists its
    settings.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """A maze (OneRoom, TwoRoom, HardMaze, FourRoom, or a text file), gym:ENV_ID, or an arena (PointUMaze,
    PointHookMaze, AntUMaze, AntHookMaze, or Point:my_maze.txt)."""
    representation: Annotated[
        Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="(default: learned first, if needed)")
    ] = None
    """A run of lapwing learn on the same maze, or a saved representation."""
    preset: Literal["default", "paper"] = "default"
    """How φ is learned if none is given: lapwing's defaults, or the paper's recipe."""


@dataclass(frozen=True)
class TrainInArena(RunOptions, ControlSettings):
    """Train a DDPG agent in a MuJoCo maze, with a learning curve, its paths and a video.

    lapwing train PointUMaze --reward mix: learns φ of (x, y) first, then shapes the reward by its distance.

    lapwing train PointHookMaze --reward fullmix --preset paper: φ of the whole state, the paper's sizes.

    lapwing train PointUMaze --reward mix --online: φ is learned together with the agent.

    lapwing train Ant:my_maze.txt --reward sparse --steps 160000: your own maze, # wall, . floor, G goal.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """An arena: PointUMaze, PointHookMaze, AntUMaze, AntHookMaze, or Point:my_maze.txt, Ant:my_maze.txt."""
    representation: Annotated[
        Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="(default: learned first, if needed)")
    ] = None
    """A run of lapwing learn in the same arena, or a saved representation."""


@dataclass(frozen=True)
class Reach(RunOptions, ReachSettings):
    """Learn a policy that reaches any goal, from data with actions, and evaluate it.

    lapwing reach ogbench:pointmaze-giant-navigate: OGBench's five tasks, fifty episodes each.

    lapwing reach PlaneHardMaze: from a million random steps, fifty random goals.

    lapwing reach FourRoom --landmarks 100: a finite maze.

    lapwing reach data.npz: your own data with actions; lapwing.load_reacher(RUN).act(observation, goal).

    lapwing reach gym:PointMaze_UMaze-v3 --observation-key achieved_goal: a Gymnasium environment with goals.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """Data with actions (an .npz or .hdf5 file, a folder, minari:NAME, ogbench:NAME), or an environment to
    collect random steps from: a maze, a plane, an arena, gym:ENV_ID."""
    representation: Annotated[
        Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="(default: learned first)")
    ] = None
    """A run of lapwing learn on the same observations, or a saved representation."""


@dataclass(frozen=True)
class Options(RunOptions, OptionsSettings):
    """Build options from eigenfunctions, and measure their effect on a random walk.

    lapwing options FourRoom: learns φ first, then 16 eigenoptions, compared with those of exact eigenvectors.

    lapwing options GridRoom-16 --kind covering --count 8: connect the extremes of the slowest function.

    lapwing options HardMaze --exact: only from exact eigenvectors; nothing is learned.

    lapwing options PlaneFourRoom --count 4: continuous positions, where DQN learns each option.

    lapwing options PointUMaze: continuous actions, where DDPG learns each option.

    lapwing options gym:MountainCar-v0: a Gymnasium environment.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """A maze (FourRoom, GridRoom-16, a text file), a plane (PlaneFourRoom), an arena (PointUMaze), or
    gym:ENV_ID."""
    representation: Annotated[
        Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="(default: learned first)")
    ] = None
    """A run of lapwing learn on the same observations, or a saved representation."""


@dataclass(frozen=True)
class Reproduce:
    """Reproduce a figure of the paper: run what is missing, then write its table, text and picture.

    lapwing reproduce fig3: gap against data, three inputs, five seeds, in minutes.

    lapwing reproduce fig4: agents on shaped rewards in three mazes.

    lapwing reproduce fig5 --only environment=PointUMaze: agents in a MuJoCo maze.

    lapwing reproduce fig3 --preset paper --jobs 8: the paper's exact settings.

    lapwing reproduce fig3 --only input=position n=1000: a part of the grid.

    Stop it at any moment; the same command resumes. Runs in OUT/FIGURE.csv are not repeated.
    """

    figure: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FIGURE", help_behavior_hint="")]
    """fig1 (shaped rewards), fig2 (the maze), fig3 (gap, d=20), fig4 (agents in mazes), fig5 (agents in
    arenas), fig6 (gap, d=50, 100), fig7 (weight of the penalty), fig8 (online), ogbench (any goal in
    OGBench's point mazes), mazes12 (every objective in ALLO's twelve mazes), or all."""
    preset: Literal["quick", "paper"] = "quick"
    """quick, or paper for the paper's settings."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results")
    """Output folder of FIGURE.csv, the text and the pictures."""
    jobs: Annotated[int | None, chosen_by_lapwing("the number of cores")] = None
    """Number of workers, one thread each."""
    on: Annotated[str, tyro.conf.arg(metavar="local|ray[:ADDRESS]")] = "local"
    """Where they run: local processes, or a Ray cluster (ray: RAY_ADDRESS, or a new local cluster;
    ray:HOST:PORT)."""
    seeds: int = 5
    """Number of seeds, from 0 on."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="COLUMN=VALUE ...")] = ()
    """Run a part of the grid: by environment, method, input, n, d, beta, reward or seed."""
    draw_only: bool = False
    """Run nothing; write text and picture from the table."""
    retry: bool = False
    """Repeat failed runs."""
    overwrite: bool = False
    """Repeat runs that are in the table."""
