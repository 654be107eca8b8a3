"""From data with actions to a Reacher: each part after the other. Nothing is written."""

import dataclasses
from typing import Any

import numpy as np

from lapwing._version import __version__
from lapwing.data.experience import Experience
from lapwing.errors import DatasetError
from lapwing.laplacian.learn import learn_target
from lapwing.laplacian.representation import Representation
from lapwing.laplacian.target import Target
from lapwing.progress import OnProgress, uncounted, within
from lapwing.reaching.action_codes import ActionCodes
from lapwing.reaching.controller import Network, Samples, WayPoints, train_network, usual_moves
from lapwing.reaching.geometry import Embedding, Places, of_experience
from lapwing.reaching.graph import Graph, build_graph, with_chances
from lapwing.reaching.jumps import cut_at, horizons_between, random_jumps
from lapwing.reaching.landmarks import choose_landmarks, nearest_landmarks
from lapwing.reaching.neighbours import Neighbours
from lapwing.reaching.planner import usual_ahead
from lapwing.reaching.reacher import Landmarks, Reacher
from lapwing.settings.learn import LearnSettings
from lapwing.settings.reach import ReachSettings

DIM = 50
MOST_OBSERVATIONS = 2_000_000
"""Of larger data every so-many-th episode is taken for the graph and the controller."""
LAG = 4
"""An action is judged over this part of the steps to a way point; over fewer, errors of φ hide it."""
FARTHER = 2.0
"""The controller is trained for way points up to so many times as far as those that it is given."""


def check_actions(experience: Experience | None, name: str) -> Experience:
    """The experience, if there are actions to learn from."""
    if experience is None or experience.actions is None:
        raise DatasetError(
            f"{name} has no actions, and a policy is learned from them; lapwing learn learns φ alone"
        )
    return experience


def recipe(settings: ReachSettings, **more: Any) -> LearnSettings:
    """How φ is learned: the defaults, with as many eigenfunctions as a plan has use for."""
    values: dict[str, Any] = {"dim": settings.dim}
    shared = ("transitions", "observation_key", "past_termination", "seed")
    values |= {name: getattr(settings, name) for name in shared}
    return LearnSettings(**(values | more))


def learn_geometry(
    target: Target, settings: ReachSettings, on_progress: OnProgress | None = None
) -> Representation:
    """φ of the target, learned from episodes that are cut where a step leads to chance."""
    experience = without_chance(check_actions(target.experience, target.name))
    target = dataclasses.replace(target, experience=experience)
    states = target.n_states
    dim = settings.dim or (DIM if states is None else min(DIM, states))
    return learn_target(target, recipe(settings, dim=dim), on_progress=on_progress)


def without_chance(experience: Experience) -> Experience:
    """The episodes, cut where a step leads to chance."""
    if experience.table is not None or len(experience.observation_shape) != 1:
        return experience
    features = Places.of(experience, None, "observation")(experience.observations)[1]
    jumps = random_jumps(experience, features)
    return cut_at(experience, jumps) if len(jumps) else experience


def build_reacher(
    experience: Experience,
    embedding: Embedding | None,
    settings: ReachSettings,
    *,
    name: str = "experience",
    on_progress: OnProgress | None = None,
) -> Reacher:
    """The policy that the data, φ and the settings give.

    Args:
        experience: episodes with actions.
        embedding: φ of the same observations; None where `geometry` is `observation`.
        settings: how.
        name: of the target.
        on_progress: called with (phase, done, all, metrics).
    """
    data = _thinned(check_actions(experience, name))
    assert data.actions is not None
    with uncounted("planning", on_progress):
        places = Places.of(data, embedding, settings.geometry)
        coordinates, features = of_experience(places, data)
        jumps = random_jumps(data, features)
        horizons = horizons_between(data.horizons, jumps)
        chosen = choose_landmarks(coordinates, settings.landmarks, settings.seed)
        nearest = nearest_landmarks(coordinates, coordinates[chosen])
        graph = with_chances(build_graph(nearest, horizons, len(chosen)), nearest.landmark, jumps)
    codes = ActionCodes.of(data.actions[data.horizons > 0])
    samples = Samples(coordinates, features, codes.encode(data.actions), horizons, nearest)
    ahead = settings.ahead or usual_ahead(graph)
    controller = _controller(samples, graph, chosen, ahead, settings, codes, on_progress)
    return Reacher(
        places,
        Landmarks(data.observe(chosen), coordinates[chosen], features[chosen], _radii(samples, chosen)),
        graph,
        ahead,
        codes,
        controller,
        settings.plan,
        {
            "target": name,
            "settings": settings.as_json(),
            "jumps": len(jumps),
            "provenance": {"lapwing": __version__, "transitions": experience.n_transitions},
        },
    )


def _controller(
    samples: Samples,
    graph: Graph,
    chosen: np.ndarray,
    ahead: float,
    settings: ReachSettings,
    codes: ActionCodes,
    on_progress: OnProgress | None,
) -> Network | Neighbours:
    lag = min(settings.lag or max(1, round(ahead / LAG)), int(samples.horizons.max()))
    if settings.controller == "neighbours":
        return Neighbours.of(samples, lag, settings.temperature, settings.seed)
    reach = graph.distances <= FARTHER * ahead if settings.plan else None
    return train_network(
        samples,
        WayPoints(samples, reach, FARTHER * ahead if settings.plan else np.inf),
        usual_moves(samples, lag, graph.count),
        _typical_distance(samples.features[chosen], reach),
        lag=lag,
        temperature=settings.temperature,
        hidden=settings.hidden,
        steps=settings.steps,
        batch=settings.batch,
        learning_rate=settings.learning_rate,
        seed=settings.seed,
        discrete=codes.discrete,
        on_chunk=within("training", on_progress),
    )


def _typical_distance(landmarks: np.ndarray, within_reach: np.ndarray | None) -> np.ndarray:
    """Of each feature, how far way points are; without a plan, how far any landmarks are apart."""
    joined = np.ones((len(landmarks),) * 2, bool) if within_reach is None else within_reach.copy()
    np.fill_diagonal(joined, False)
    begins, ends = np.nonzero(joined)
    mean = np.abs(landmarks[begins] - landmarks[ends]).mean(axis=0) if len(begins) else np.zeros(1)
    return np.where(mean > 1e-9, mean, 1.0).astype(np.float32) * np.ones(landmarks.shape[1], np.float32)


def _radii(samples: Samples, chosen: np.ndarray) -> np.ndarray:
    """From each landmark to the farthest state that belongs to it, in the features."""
    landmark = samples.nearest.landmark
    apart = np.linalg.norm(samples.features - samples.features[chosen[landmark]], axis=1)
    radii = np.zeros(len(chosen), np.float32)
    np.maximum.at(radii, landmark, apart)
    return radii


def _thinned(experience: Experience) -> Experience:
    every = -(-len(experience.observations) // MOST_OBSERVATIONS)
    if every <= 1:
        return experience
    return experience.episodes(np.arange(experience.n_episodes) % every == 0)
