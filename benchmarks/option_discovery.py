"""The online loop against a random walk of as many steps: what is seen, how evenly, and what φ it makes.

20 walks in each maze, from the same starts; options are looked for every 2 n steps of 40 n, n the states.
"""

import numpy as np

from benchmarks.rows import Row
from lapwing.envs.gridworld import GridWorld
from lapwing.laplacian.chain import true_chain
from lapwing.laplacian.evaluate import Spectrum, cosine_similarities, exact_spectrum
from lapwing.mazes import read_maze
from lapwing.options.discovery import Walked, seen_chain, walk_and_discover

MAZES = ("FourRoom", "HardMaze", "GridMaze-26", "GridRoom-16")
WALKS, ROUNDS, SHARE, DIM = 20, 20, 0.2, 11
MEASURES = {
    "steps until 90 % of the states were seen, over the number of states": "seen",
    "evenness of visits: exp(entropy) over the number of states": "evenness",
    "mean cosine of the first 11 eigenfunctions of what was seen with the true ones": "cosine",
}


def measure() -> list[Row]:
    rows = []
    for name in MAZES:
        found = {discover: measure_maze(name, discover) for discover in (True, False)}
        for claim, measure in MEASURES.items():
            with_options, without = (np.array(found[how][measure]) for how in (True, False))
            apart = with_options - without
            spread = apart.std(ddof=1) / np.sqrt(WALKS)
            note = f"random walk {without.mean():.3g}; paired difference {apart.mean():.3g} ± {spread:.2g}"
            rows.append(Row(f"{name}, options found online: {claim}", float(with_options.mean()), note=note))
    return rows


def measure_maze(name: str, discover: bool) -> dict[str, list[float]]:
    """The measures of each walk."""
    world = GridWorld(read_maze(name))
    spectrum = exact_spectrum(true_chain(world.transition_matrix()), DIM)
    found: dict[str, list[float]] = {measure: [] for measure in MEASURES.values()}
    for seed in range(WALKS):
        how = {"rounds": ROUNDS, "steps": 2 * world.n_states, "share": SHARE, "seed": seed}
        walked = walk_and_discover(world.next_state, discover=discover, **how)
        for measure, value in _measures(walked, spectrum, world.n_states).items():
            found[measure].append(value)
    return found


def _measures(walked: Walked, spectrum: Spectrum, n_states: int) -> dict[str, float]:
    _, first = np.unique(walked.states, return_index=True)
    first = np.sort(first)
    needed = int(np.ceil(0.9 * n_states))
    steps = first[needed - 1] if len(first) >= needed else len(walked.states)
    visits = np.bincount(walked.states, minlength=n_states) / len(walked.states)
    entropy = -np.sum(visits[visits > 0] * np.log(visits[visits > 0]))
    _, functions = seen_chain(walked.states, n_states).eigenpairs(min(DIM, len(first)))
    return {
        "seen": float(steps / n_states),
        "evenness": float(np.exp(entropy) / n_states),
        "cosine": float(cosine_similarities(spectrum, functions)[1:].mean()),
    }
