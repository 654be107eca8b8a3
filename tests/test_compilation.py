"""Programs that are kept on disk, seen from processes of their own: this one keeps the tests' programs."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import jax
import pytest

from lapwing import compilation
from lapwing.compilation import SETTING, kept_programs, machine_digest, programs_folder
from tests.support.processes import in_own_mount

SCRIPT = """
    import json, sys, warnings
    warnings.simplefilter("error")
    import jax
    import lapwing
    from lapwing import compilation

    events = []
    jax.monitoring.register_event_listener(lambda event, **kwargs: events.append(event.rpartition("/")[2]))
    before = {name: jax.config.values[name] for name in jax.config.values if "cache" in name}
    with compilation.kept_programs(), compilation.kept_programs():
        jax.jit(lambda x: x * 2)(1.0)
    found = {name: events.count(name) for name in ("cache_hits", "cache_misses")}
    events.clear()
    jax.jit(lambda x: x * 3)(1.0)
    after = {name: jax.config.values[name] for name in jax.config.values if "cache" in name}
    print(json.dumps(found | {"later": len(set(events) & set(found)), "as_before": before == after}))
"""


def in_process(script: str = SCRIPT, **environment: str) -> dict:
    """What a script prints, in a process that knows nothing of the tests' programs."""
    hidden = ("JAX_COMPILATION_CACHE_DIR", SETTING)
    inherited = {name: value for name, value in os.environ.items() if name not in hidden}
    command = [sys.executable, "-c", textwrap.dedent(script)]
    done = subprocess.run(command, env=inherited | environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def programs(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*-cache") if path.is_file()]


def test_what_was_compiled_is_loaded_by_the_next_process(tmp_path):
    first = in_process(LAPWING_CACHE=str(tmp_path / "home"))
    assert first == {"cache_hits": 0, "cache_misses": 1, "later": 0, "as_before": True}
    (folder,) = (tmp_path / "home" / "compiled").iterdir()
    assert lapwing_and_jax(folder.name)
    assert len(programs(folder)) == 1
    again = in_process(LAPWING_CACHE=str(tmp_path / "home"))
    assert again == {"cache_hits": 1, "cache_misses": 0, "later": 0, "as_before": True}


def lapwing_and_jax(name: str) -> bool:
    import lapwing

    return lapwing.__version__ in name and jax.__version__ in name and name.endswith(machine_digest())


def test_it_can_be_elsewhere_and_off_and_the_users_own(tmp_path):
    elsewhere, own, home = tmp_path / "elsewhere", tmp_path / "own", {"LAPWING_CACHE": str(tmp_path / "home")}
    in_process(**home, **{SETTING: str(elsewhere)})
    assert len(programs(elsewhere)) == 1
    assert in_process(**home, **{SETTING: "off"})["cache_misses"] == 0
    in_process(**home, **{SETTING: str(elsewhere), "JAX_COMPILATION_CACHE_DIR": str(own)})
    assert own.is_dir()
    assert len(programs(elsewhere)) == 1
    assert not (tmp_path / "home").exists()


def test_importing_makes_no_folder(tmp_path):
    script = "import lapwing, lapwing.compilation, lapwing.runs.learn; print(1)"
    assert in_process(script, LAPWING_CACHE=str(tmp_path / "home")) == 1
    assert not (tmp_path / "home").exists()


def test_where_no_folder_can_be_all_goes_on_without_a_word(tmp_path):
    (tmp_path / "file").write_text("no folder")
    found = in_process(**{SETTING: str(tmp_path / "file" / "below")})
    assert found["cache_hits"] == found["cache_misses"] == 0


def test_a_full_disk_is_passed_over_without_a_word(tmp_path):
    full = """
        import os, sys
        os.environ["LAPWING_COMPILATION_CACHE"] = sys.argv[1]
        os.environ.pop("JAX_COMPILATION_CACHE_DIR", None)
        from lapwing import compilation
        assert compilation.programs_folder() is None
        compilation.LEAST_FREE = 0
        with open(sys.argv[1] + "/filler", "wb", buffering=0) as file:
            try:
                while file.write(bytes(1024)):
                    pass
            except OSError:
                pass
    """
    printed = in_own_mount(tmp_path, "size=256k", textwrap.dedent(full) + textwrap.dedent(SCRIPT))
    assert json.loads(printed)["cache_hits"] == 0


def test_a_damaged_program_is_compiled_again(tmp_path):
    environment = {SETTING: str(tmp_path)}
    in_process(**environment)
    (program,) = programs(tmp_path)
    program.write_bytes(program.read_bytes()[:100])
    assert in_process(**environment)["cache_hits"] == 0


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners and modes of files")
def test_a_folder_that_others_can_write_to_is_not_trusted(tmp_path, monkeypatch):
    monkeypatch.setenv(SETTING, str(tmp_path))
    folder = programs_folder()
    assert folder is not None
    assert folder.stat().st_mode & 0o077 == 0
    folder.chmod(0o777)
    assert programs_folder() is None


def test_programs_of_another_cpu_are_elsewhere(monkeypatch):
    here = machine_digest.__wrapped__()
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_max_isa=SSE4_2")
    other_flags = machine_digest.__wrapped__()
    monkeypatch.setattr(compilation.platform, "machine", lambda: "another")
    assert len({here, other_flags, machine_digest.__wrapped__()}) == 3


def test_a_cache_that_is_in_use_is_left_alone():
    before = jax.config.jax_compilation_cache_dir
    with kept_programs():
        assert jax.config.jax_compilation_cache_dir == before
    assert jax.config.jax_compilation_cache_dir == before


@pytest.mark.parametrize("platform", ["cuda", "no_such_platform"])
def test_a_device_that_is_not_there_is_refused_by_its_name(platform, tmp_path):
    """Where there is a GPU, `cuda` works, and says so."""
    command = [sys.executable, "-m", "lapwing", "learn", "OneRoom", "--transitions", "100"]
    command += ["--observation", "index", "--steps", "1", "--dim", "2"]
    environment = os.environ | {"JAX_PLATFORMS": platform}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        assert done.returncode == 2
        assert f"JAX_PLATFORMS={platform}" in done.stderr
        assert "Traceback" not in done.stderr
    else:
        assert platform == "cuda"
