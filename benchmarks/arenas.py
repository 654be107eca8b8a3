"""Point and Ant in MuJoCo mazes, the whole state: does the default distance follow the way to the goal?"""

from benchmarks.others import learn
from benchmarks.rows import Row
from lapwing.laplacian.evaluate import evaluate
from lapwing.laplacian.target import open_target
from lapwing.settings.learn import LearnSettings

STEPS = 300_000


def measure(name: str) -> list[Row]:
    settings = {"observation": "state", "transitions": STEPS}
    target = open_target(name, LearnSettings.from_keywords(settings))
    representation, seconds = learn(target, **settings)
    found = evaluate(representation, target)["distance_correlation"]
    words = ", ".join(f"{measure} {value:.3f}" for measure, value in found.items())
    title = f"{name}, {STEPS:,} random steps: rank of the default distance with the way to the goal"
    return [Row(title, found["biharmonic"], 0.98, note=f"{words}; {seconds:.0f} s")]
