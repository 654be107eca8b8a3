"""The commands of lapwing and their options, as documented dataclasses: `--help` is made from them.

Nothing heavy is imported here, so that `--help` is quick.
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
    """Where a run is kept, for the commands that make one."""

    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: a new one in runs/)")
    ] = None
    """The run folder."""
    overwrite: bool = False
    """Replace the run that is in the folder."""
    resume: bool = False
    """Resume the run in the folder where it was interrupted."""
    log: Annotated[
        tuple[Literal["tensorboard", "wandb"], ...],
        tyro.conf.arg(metavar="{tensorboard,wandb}", help_behavior_hint=""),
    ] = ()
    """Log metrics to TensorBoard, in runs/tensorboard, or to Weights & Biases, or to both."""
    json: bool = False
    """Print the measures as one line of JSON on standard output, and nothing else there."""

    def __post_init__(self) -> None:
        """Check nothing yet: `settings` does, where its message is not wrapped by the parser's."""

    def settings(self) -> Any:
        """The settings among the options, checked."""
        (kind,) = (base for base in type(self).__bases__ if base is not RunOptions)
        return kind(**{field.name: getattr(self, field.name) for field in dataclasses.fields(kind)})


@dataclass(frozen=True)
class Learn(RunOptions, LearnSettings):
    """Learn a representation, evaluate it and draw it.

    lapwing learn FourRoom: 10⁶ random steps, 20 eigenfunctions, in seconds.

    lapwing learn my_maze.txt --dim 11: a maze of your own, # wall, . floor, G goal.

    lapwing learn data.npz --out runs/mine: recorded experience, .hdf5 too; minari:NAME, a Minari data set.

    lapwing learn ogbench:pointmaze-giant-navigate: a data set of OGBench, made again if it is not there.

    lapwing learn gym:CartPole-v1 --transitions 100000: a Gymnasium environment.

    lapwing learn gym:my_env.py:MyEnv: one of your own, a class or a function in my_env.py.

    lapwing learn PlaneFourRoom: continuous positions, compared with a fine discretisation.

    lapwing learn PointUMaze --preset paper-control: a body in a MuJoCo maze.

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
    """Learn from a folder of shards as one process of a job: auto, as SLURM or Open MPI say; or the address
    of process 0, the number of this process from 0, and how many there are."""


@dataclass(frozen=True)
class Data:
    """Say what is in a data set, and what lapwing would do with it.

    lapwing data inspect walks.npz: episodes, lengths, shapes, ranges, NaN, and whether states repeat.

    lapwing data inspect minari:point/umaze-v0 --observation-key observation: a part of Dict observations.

    lapwing data shard walks --shards 8: divide a folder of episodes for several processes to learn from.
    """

    action: Annotated[
        tyro.conf.Positional[Literal["inspect", "shard"]], tyro.conf.arg(metavar="inspect|shard")
    ]
    """What to do with it."""
    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE")]
    """An .npz or .hdf5 file, a folder of lapwing.save_episodes, minari:NAME, or ogbench:NAME."""
    observation_key: str | None = None
    """Which part of Dict observations to look at."""
    keys: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=ARRAY ...", help_behavior_hint="")] = ()
    """Which array of a file is which, where it has names of its own: observations=obs ends=done."""
    shards: Annotated[int | None, tyro.conf.arg(help_behavior_hint="(with shard)")] = None
    """Into how many shards."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: FILE-shards)")] = (
        None
    )
    """Where the shards go."""
    json: bool = False
    """Print what was found as one line of JSON on standard output."""


@dataclass(frozen=True)
class Evaluate:
    """Measure a finished run again, against the exact spectrum where there is one, and draw it.

    lapwing evaluate runs/FourRoom: a representation.

    lapwing evaluate runs/HardMaze-mix: an agent; its pictures are drawn again.

    lapwing evaluate runs/PlaneHardMaze-reach: a reacher, by the same goals again.

    lapwing evaluate runs/FourRoom-solve: the policy of a reward, against the best there is.

    lapwing evaluate runs/MyEnv --env gym:my_env.py:MyEnv: one whose collected data is gone. A run folder
    never runs a file by itself; only one that you name here is run.
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The folder of a finished run."""
    env: Annotated[str | None, tyro.conf.arg(metavar="gym:FILE.py:CLASS", help_behavior_hint="")] = None
    """The run's environment, to collect from it again where experience.npz is gone."""
    json: bool = False
    """Print the measures as one line of JSON on standard output."""


@dataclass(frozen=True)
class Audit:
    """Judge shaped rewards before any agent is trained: how they mislead, and how far one must look ahead.

    lapwing audit HardMaze: every filter, with φ as the chain's own eigenvectors give it.

    lapwing audit runs/HardMaze: with the φ that was learned.

    lapwing audit HardMaze runs/a runs/b --goal 1,1: side by side, for another goal.
    """

    targets: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="MAZE|RUN ...", help_behavior_hint="")
    ] = ()
    """A maze, runs of lapwing learn, or several of them of one maze."""
    goal: Annotated[
        str | None, tyro.conf.arg(metavar="ROW,COLUMN", help_behavior_hint="(default: the maze's own)")
    ] = None
    """The cell to be reached."""
    gamma: float = 0.98
    """The agent's discount."""
    episode_length: int = 50
    """Steps in an episode."""
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: runs/MAZE-audit)")
    ] = None
    """Where the picture goes."""
    json: bool = False
    """Print the audits as one line of JSON on standard output."""


@dataclass(frozen=True)
class Solve:
    """Solve a reward in a maze at once: value, moves and a path, against the best that there is.

    lapwing solve GridRoom-16 --reward goal=2,2: φ is learned first (seconds), then the reward is solved.

    lapwing solve runs/FourRoom --reward "goal=1,1 -1=7,4": with the φ of a run; several cells.

    lapwing solve FourRoom --reward map.txt: a map like the maze, . for 0, 1 to 9, a to i for -1 to -9.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="MAZE|RUN", help_behavior_hint="")] = (
        ""
    )
    """A maze, or a run of lapwing learn in one."""
    reward: Annotated[
        str | None, tyro.conf.arg(metavar="goal=ROW,COLUMN|FILE", help_behavior_hint="(required)")
    ] = None
    """Cells and what arriving there gives, goal= for 1; or a painted map of the maze."""
    gamma: float = 0.98
    """The discount."""
    dim: Annotated[int | None, chosen_by_lapwing("50, or all states where they are fewer")] = None
    """How many eigenfunctions are learned."""
    start: Annotated[
        str | None,
        tyro.conf.arg(metavar="ROW,COLUMN", help_behavior_hint="(default: the cell of least value)"),
    ] = None
    """The cell where the path begins."""
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="DIR", help_behavior_hint="(default: runs/MAZE-solve)")
    ] = None
    """Where the policy and the picture go."""
    json: bool = False
    """Print the result as one line of JSON on standard output."""


@dataclass(frozen=True)
class Explore:
    """Write one HTML page in which a representation can be looked at and tried, and open it.

    lapwing explore runs/FourRoom: eigenfunctions, spectrum, distances, painted rewards, embedding.

    lapwing explore runs/TwoRoom-reach --no-open --out reach.html: with a reacher's plans; only written.
    """

    run: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RUN")]
    """The folder of a finished run of lapwing learn or reach, or a saved representation."""
    out: Annotated[
        Path | None, tyro.conf.arg(metavar="FILE", help_behavior_hint="(default: RUN/explorer.html)")
    ] = None
    """Where the page goes."""
    open: bool = True
    """Whether to open it in a browser."""
    json: bool = False
    """Print the page's path and size as one line of JSON on standard output."""


@dataclass(frozen=True)
class Train(RunOptions, AgentSettings):
    """Train a DQN agent on a shaped reward, with a learning curve and an animation of its policy.

    lapwing train HardMaze: learns φ first (seconds), then shapes the reward by its distance as a potential.

    lapwing train HardMaze --reward mix --preset paper: the paper's φ and reward.

    lapwing train TwoRoom --reward sparse --steps 10000: no φ, to compare with.

    lapwing train HardMaze --representation runs/HardMaze: with a φ that was learned before.

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
    """How φ is learned where none is given: lapwing's defaults, or the paper's recipe."""


@dataclass(frozen=True)
class TrainInArena(RunOptions, ControlSettings):
    """Train a DDPG agent in a MuJoCo maze, with a learning curve, its paths and a film.

    lapwing train PointUMaze --reward mix: learns φ of (x, y) first, then shapes the reward by its distance.

    lapwing train PointHookMaze --reward fullmix --preset paper: φ of the whole state, the paper's sizes.

    lapwing train PointUMaze --reward mix --online: φ is learned while the agent learns.

    lapwing train Ant:my_maze.txt --reward sparse --steps 160000: a maze of your own, # wall, . floor, G goal.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """An arena: PointUMaze, PointHookMaze, AntUMaze, AntHookMaze, or Point:my_maze.txt, Ant:my_maze.txt."""
    representation: Annotated[
        Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="(default: learned first, if needed)")
    ] = None
    """A run of lapwing learn in the same arena, or a saved representation."""


@dataclass(frozen=True)
class Reach(RunOptions, ReachSettings):
    """Make a policy that goes to any goal, from data with actions, and evaluate it.

    lapwing reach ogbench:pointmaze-giant-navigate: OGBench's five tasks, fifty episodes each.

    lapwing reach PlaneHardMaze: from a million random steps, fifty random goals.

    lapwing reach FourRoom --landmarks 100: a finite maze.

    lapwing reach data.npz: data of your own, with actions; lapwing.load_reacher(RUN).act(observation, goal).

    lapwing reach gym:PointMaze_UMaze-v3 --observation-key achieved_goal: a Gymnasium environment with goals.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """Data with actions (an .npz or .hdf5 file, a folder, minari:NAME, ogbench:NAME), or what it is collected
    from by random actions: a maze, a plane, an arena, gym:ENV_ID."""
    representation: Annotated[
        Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="(default: learned first)")
    ] = None
    """A run of lapwing learn on the same observations, or a saved representation."""


@dataclass(frozen=True)
class Options(RunOptions, OptionsSettings):
    """Make options of eigenfunctions, and measure what they do to a random walk.

    lapwing options FourRoom: learns φ first, then 16 eigenoptions, beside those of exact eigenvectors.

    lapwing options GridRoom-16 --kind covering --count 8: join the ends of the slowest function.

    lapwing options HardMaze --exact: of exact eigenvectors alone; nothing is learned.

    lapwing options PlaneFourRoom --count 4: continuous positions, where DQN learns each option.

    lapwing options gym:MountainCar-v0: a Gymnasium environment with discrete actions.
    """

    target: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="TARGET", help_behavior_hint="")] = ""
    """A maze (FourRoom, GridRoom-16, a text file), a plane (PlaneFourRoom), or gym:ENV_ID."""
    representation: Annotated[
        Path | None, tyro.conf.arg(metavar="RUN", help_behavior_hint="(default: learned first)")
    ] = None
    """A run of lapwing learn on the same observations, or a saved representation."""


@dataclass(frozen=True)
class Reproduce:
    """Make a figure of the paper: run what is missing, then write its table, text and picture.

    lapwing reproduce fig3: gap against data, three inputs, five seeds, in minutes.

    lapwing reproduce fig4: agents on shaped rewards in three mazes.

    lapwing reproduce fig5 --only environment=PointUMaze: agents in a MuJoCo maze.

    lapwing reproduce fig3 --preset paper --jobs 8: the paper's settings to the letter.

    lapwing reproduce fig3 --only input=position n=1000: a part of the grid.

    Stop it at any moment; the same command resumes. What OUT/FIGURE.csv holds counts as done.
    """

    figure: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FIGURE", help_behavior_hint="")]
    """fig1 (shaped rewards), fig2 (the maze), fig3 (gap, d=20), fig4 (agents in mazes), fig5 (agents in
    arenas), fig6 (gap, d=50, 100), fig7 (weight of the penalty), fig8 (online), ogbench (any goal in
    OGBench's point mazes), mazes12 (every objective in ALLO's twelve mazes), or all."""
    preset: Literal["quick", "paper"] = "quick"
    """quick, or paper for the paper's settings."""
    out: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("results")
    """Where FIGURE.csv, the text and the pictures go."""
    jobs: Annotated[int | None, chosen_by_lapwing("the number of cores")] = None
    """Workers, one thread each."""
    on: Annotated[str, tyro.conf.arg(metavar="local|ray[:ADDRESS]")] = "local"
    """Where they run: processes of this machine, or a Ray cluster (ray: RAY_ADDRESS, or one of this machine's
    own; ray:HOST:PORT)."""
    seeds: int = 5
    """How many seeds, from 0 on."""
    only: Annotated[tuple[str, ...], tyro.conf.arg(metavar="COLUMN=VALUE ...")] = ()
    """Run a part of the grid: by environment, method, input, n, d, beta, reward or seed."""
    draw_only: bool = False
    """Run nothing: text and picture of what is in the table."""
    retry: bool = False
    """Try runs again that failed."""
    overwrite: bool = False
    """Do runs again that are in the table."""
