import ast
import importlib.metadata
import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import gymnasium
import pytest

import lapwing

SOURCE = Path(lapwing.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
LIGHT = ("jax", "scipy", "optax", "equinox", "matplotlib")


def modules_after(statement: str) -> set[str]:
    script = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in json.loads(printed.stdout)}


def test_the_public_names_are_all_there():
    assert {*lapwing.__all__, *lapwing.WITH_EXTRA} == set(dir(lapwing))
    for name in dir(lapwing):
        assert getattr(lapwing, name) is not None
    for name in ("learn", "load", "Representation", "Experience", "Maze", "evaluate", "__version__"):
        assert name in lapwing.__all__


def test_every_public_function_and_class_is_documented():
    for name in dir(lapwing):
        if not name.startswith("__"):
            assert getattr(lapwing, name).__doc__, name


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'lapwing' has no attribute 'lern'"):
        lapwing.lern  # noqa: B018


def test_names_can_be_imported_from_the_package():
    modules = modules_after("from lapwing import *; assert callable(learn) and callable(load)")
    assert "jax" in modules


@pytest.mark.parametrize("heavy", LIGHT)
def test_importing_the_package_is_light(heavy):
    assert heavy not in modules_after("import lapwing")


@pytest.mark.parametrize("heavy", LIGHT)
def test_importing_the_command_line_is_light(heavy):
    assert heavy not in modules_after("import lapwing.cli.main")


def test_importing_the_package_registers_its_environments():
    names = ("OneRoom", "TwoRoom", "HardMaze", "FourRoom", "Maze")
    assert {f"lapwing/{name}-v0" for name in names} <= set(gymnasium.registry)


def test_the_version_is_that_of_the_installed_package():
    assert lapwing.__version__ == importlib.metadata.version("lapwing")


def test_types_and_mazes_are_part_of_the_package():
    assert resources.files("lapwing").joinpath("py.typed").is_file()
    for name in ("one_room", "two_room", "hard_maze", "four_room"):
        assert resources.files("lapwing.mazes").joinpath(f"{name}.txt").is_file()


# What the source may not do


def calls(tree: ast.AST) -> set[str]:
    """The names of all that is called, with what they are called on."""
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def imports(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def parsed(path: Path) -> ast.AST:
    return ast.parse(path.read_text("utf-8"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nothing_that_is_read_can_be_run(path):
    """No pickle, in any guise, and no code from text."""
    tree = parsed(path)
    pickles = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
    assert not {name.split(".")[0] for name in imports(tree)} & pickles
    assert not calls(tree) & {"torch.load", "torch.save", "torch.jit.load", "load_dataset"}
    assert not calls(tree) & {"eval", "exec", "compile", "__import__", "os.system", "numpy.fromregex"}
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell"):
            assert isinstance(node.value, ast.Constant)
            assert node.value.value is False
    if "np.load" in calls(tree):
        assert "allow_pickle=False" in path.read_text("utf-8")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_command_line_prints(path):
    if path.name not in ("cli.py", "__main__.py"):
        assert "print" not in calls(parsed(path))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_storage_writes_files(path):
    if path.name == "storage.py":
        return
    writing = ("write_text", "write_bytes", "savez", "np.save", "open", "mkdir", "unlink", "rename", "rmtree")
    for call in calls(parsed(path)):
        name = call.rsplit(".", 1)[-1]
        if call.startswith("storage.") or call in ("write_bytes", "make_folder"):
            continue
        if name == "open":
            assert '.open("rb")' in path.read_text("utf-8"), call
        elif name == "savez":
            assert "np.savez(buffer" in path.read_text("utf-8"), call
        else:
            assert name not in writing, call


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_randomness_has_a_seed(path):
    """No global generator, and none seeded from the clock."""
    for call in calls(parsed(path)):
        assert not call.startswith(("np.random.seed", "random.", "time.time", "jax.random.PRNGKey"))
        if call.startswith("np.random."):
            assert call.startswith("np.random.default_rng")
    assert "default_rng()" not in path.read_text("utf-8")


ORDER = [
    *(
        "errors",
        "storage",
        "validation",
        "settings",
        "mazes",
        "envs",
        "spaces",
        "mapped",
        "observations",
        "experience",
        "archives",
    ),
    *("data_files", "hdf5_heaps", "hdf5_columns", "minari_spaces", "minari_data", "sources", "collecting"),
    *("sampling", "chain", "encoders", "objectives"),
    *("ritz", "targets", "timing", "estimators", "learning", "representation", "step_size", "forward"),
    *("torch_module",),
    *("stopping", "resolving", "trust", "evaluation", "baselines", "runs", "workflow", "inspecting"),
    *("neighbours", "embedding", "rewards", "goals", "wrappers", "vector_wrappers", "sb3", "tasks", "audit"),
    *("comparing", "online", "online_learner", "agents", "control", "shaping", "training", "plots"),
    *("progress", "report", "experiments", "commands", "cli"),
]


def test_modules_import_only_from_those_above_them():
    """DESIGN: the modules stand in one order, in which the data flows."""
    homes = {path.relative_to(SOURCE).parts[0].removesuffix(".py") for path in MODULES}
    assert homes - {"__init__", "__main__", "_version"} == set(ORDER)
    for path in MODULES:
        home = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if home not in ORDER:
            continue
        for name in imports(parsed(path)):
            parts = name.split(".")
            if parts[0] == "lapwing" and len(parts) > 1 and parts[1] in ORDER:
                assert ORDER.index(parts[1]) <= ORDER.index(home), f"{home} imports {parts[1]}"
