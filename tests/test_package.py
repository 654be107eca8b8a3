import ast
import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import gymnasium
import pytest

import lapwing

SOURCE = Path(lapwing.__file__).parent


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


@pytest.mark.parametrize("module", ["lapwing", "lapwing.cli.main"])
def test_importing_is_light(module):
    assert not modules_after(f"import {module}") & {
        "jax",
        "scipy",
        "optax",
        "equinox",
        "matplotlib",
        "mujoco",
    }


def test_importing_the_package_registers_its_environments():
    names = ("OneRoom", "TwoRoom", "HardMaze", "FourRoom", "Maze")
    assert {f"lapwing/{name}-v0" for name in names} <= set(gymnasium.registry)


def test_the_version_is_that_of_the_installed_package():
    assert lapwing.__version__ == importlib.metadata.version("lapwing")


def test_types_and_mazes_are_part_of_the_package():
    assert resources.files("lapwing").joinpath("py.typed").is_file()
    for name in ("one_room", "two_room", "hard_maze", "four_room"):
        assert resources.files("lapwing.mazes").joinpath(f"{name}.txt").is_file()


def parsed(folder: Path) -> dict[str, ast.AST]:
    """The syntax tree of each module in a folder and in those below it, by its path."""
    return {
        path.relative_to(folder).as_posix(): ast.parse(path.read_text("utf-8"))
        for path in sorted(folder.rglob("*.py"))
    }


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.AST]:
    return parsed(SOURCE)


def calls(tree: ast.AST) -> list[ast.Call]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def called(call: ast.Call) -> str:
    """The name of what is called, with what it is called on."""
    return ast.unparse(call.func)


def offending(modules: dict[str, ast.AST], wrong: Callable[[ast.Call], bool]) -> dict[str, list[str]]:
    """The calls of each module that are wrong, for those with any."""
    found = {
        path: [ast.unparse(call) for call in calls(tree) if wrong(call)] for path, tree in modules.items()
    }
    return {path: these for path, these in found.items() if these}


def imports(tree: ast.AST) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}
RUNS_CODE = {
    *("eval", "exec", "compile", "__import__", "os.system", "np.fromregex"),
    *("torch.load", "torch.save", "torch.jit.load", "load_dataset"),
}


def may_run_code(call: ast.Call) -> bool:
    """Whether it runs text, unpickles or starts a shell."""
    options = {option.arg: ast.unparse(option.value) for option in call.keywords}
    unpickles = called(call) == "np.load" and "allow_pickle" not in options
    return (
        called(call) in RUNS_CODE
        or unpickles
        or {options.get(name, "False") for name in ("allow_pickle", "shell")} != {"False"}
    )


def test_nothing_that_is_read_can_be_run(modules):
    """No pickle, in any guise, and no code from text."""
    assert not offending(modules, may_run_code)
    imported = {path: {name.split(".")[0] for name in imports(tree)} for path, tree in modules.items()}
    assert not {path for path, names in imported.items() if names & PICKLES}


def test_only_the_command_line_prints(modules):
    printing = offending(modules, lambda call: called(call) == "print")
    assert not {path for path in printing if not path.startswith("cli/")}


def writes(call: ast.Call) -> bool:
    """Whether it changes a file or a folder, other than by `storage`."""
    whole, arguments = called(call), list(map(ast.unparse, call.args))
    owner, _, name = whole.rpartition(".")
    if owner == "storage":
        return False
    if name == "open":
        return arguments != ["'rb'"] and owner != "archive"
    if name.startswith("save") and owner == "np":
        return arguments[0] not in ("buffer", "file")  # one that `storage` opened
    if name == "write_bytes":
        return owner != ""
    return name in ("write_text", "mkdir", "unlink", "rename", "rmtree")


def test_only_storage_writes_files(modules):
    assert not {path for path in offending(modules, writes) if not path.startswith("storage/")}


def unseeded(call: ast.Call) -> bool:
    """Whether it draws from a global generator, or from one that is seeded by the clock."""
    name = called(call)
    if name.startswith("np.random.default_rng"):
        return name.endswith("default_rng") and not call.args
    return name.startswith(("np.random.", "random.", "time.time", "jax.random.PRNGKey"))


def test_randomness_has_a_seed(modules):
    assert not offending(modules, unseeded)


def test_no_test_module_imports_another():
    """What two of them need is in tests/support."""
    imported = {path: imports(tree) for path, tree in parsed(Path(__file__).parent).items()}
    wrong = {
        (path, name) for path in imported for name in imported[path] if re.search(r"\btest_|conftest", name)
    }
    assert not wrong
