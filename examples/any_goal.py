"""Random walks in two rooms, then any goal: a plan over landmarks and a controller, no reward, no agent.

python examples/any_goal.py [FOLDER] [TRANSITIONS]
"""

import sys
from pathlib import Path

import gymnasium
import numpy as np

import lapwing
from lapwing import plots

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
env = gymnasium.make("lapwing/PlaneTwoRoom-v0")
transitions = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
data = lapwing.collect(env, transitions, seed=0)  # observations and actions of random steps
reacher = lapwing.reach(data, dim=10, landmarks=150, steps=400)
print(reacher)

rng = np.random.default_rng(0)
reached, walks = 0, []
for episode in range(20):
    goal = data.observations[rng.integers(len(data.observations))]  # any observation is a goal
    seen, _ = env.reset(seed=episode)
    path = [seen]
    for _ in range(300):
        if np.linalg.norm(seen - goal) < 0.0625:  # half a cell
            reached += 1
            break
        seen, *_ = env.step(reacher.act(seen, goal))
        path.append(seen)
    walks.append((goal, np.stack(path)))
print(f"{reached} of 20 goals reached, {np.mean([len(path) - 1 for _, path in walks]):.0f} steps in the mean")

goal, path = max(walks, key=lambda walk: np.linalg.norm(walk[1][0] - walk[0]))
plan = reacher.plan(path[0], goal)
figure = plots.draw_plan(reacher.landmarks.observations, plan, path, True)
plots.save_figure(figure, folder / "plan")
reacher.save(folder / "reacher.safetensors")  # lapwing.load_reacher reads it
