"""Sweeps on a real Ray cluster of two nodes on this machine."""

import os
import threading
import time
from collections.abc import Iterator

import pytest

import lapwing
from lapwing.errors import ConfigError
from lapwing.figures.methods import method_run
from lapwing.figures.runner import execute_grid
from lapwing.sweeps import on_ray
from tests.support import swept

ray = pytest.importorskip("ray", reason="sweeps on Ray need the package ray")

pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator:
    """A head with one core, and a node with one core that a test may take away."""
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # A lost node is noticed within seconds.
    config = {
        "health_check_initial_delay_ms": 0,
        "health_check_period_ms": 500,
        "health_check_failure_threshold": 3,
    }
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "_system_config": config, "include_dashboard": False},
    )
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def test_a_grid_is_done_by_a_cluster_and_one_process_gives_the_same(cluster, tmp_path):
    runs = [method_run("fig3", "quick", "transitions-2017", "index", 200, 3, seed) for seed in range(2)]
    keys, on = {run.key for run in runs}, f"ray:{cluster.address}"
    told = []
    rows, failures = execute_grid(
        runs,
        keys,
        tmp_path / "ray" / "fig3.csv",
        on=on,
        on_status=lambda status: told.append(len(status.done)),
    )
    assert failures == {}
    assert not ray.is_initialized()
    here, _ = execute_grid(runs, keys, tmp_path / "local" / "fig3.csv", jobs=1)

    def gaps(rows):
        return {row["key"]: row["value"] for row in rows if row["metric"] == "gap"}

    assert gaps(rows) == pytest.approx(gaps(here), rel=1e-6)
    assert told[-1] == 2


def test_a_run_whose_node_is_lost_is_done_again_elsewhere(cluster, tmp_path):
    """Whatever runs on the second node waits there for ever, until the node is killed."""
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    lost = []

    def kill_node() -> None:
        while not (waits := list(tmp_path.iterdir())):
            time.sleep(0.05)
        lost.extend(waits)
        cluster.remove_node(node, allow_graceful=False)

    thread = threading.Thread(target=kill_node, daemon=True)
    thread.start()
    grid = {"number": [0, 1, 2, 3], "node": [node.node_id], "folder": [str(tmp_path)]}
    runs = lapwing.sweep(swept.wait_on, grid, on=f"ray:{cluster.address}", jobs=2)
    assert [run.error for run in runs] == [None] * 4
    assert [run.result for run in runs] == [0, 1, 2, 3]
    assert lost


def test_more_jobs_than_cores_are_done_one_after_the_other(cluster):
    """The second worker gets the only core when the first has nothing left to do."""
    runs = lapwing.sweep(swept.area, {"width": [1, 2], "height": [3]}, on=f"ray:{cluster.address}", jobs=2)
    assert [(run.error, float(run.result["area"])) for run in runs] == [(None, 3), (None, 6)]


def test_a_node_with_another_version_is_refused_by_name(cluster, tmp_path, monkeypatch):
    there = on_ray.installed()
    monkeypatch.setattr(on_ray, "installed", lambda: there | {"lapwing": "9.9.9"})
    with pytest.raises(ConfigError, match=r"lapwing .*9\.9\.9"):
        lapwing.sweep(swept.area, {"width": [1], "height": [1]}, on=f"ray:{cluster.address}")


def test_a_machine_without_ray_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ConfigError, match=r"lapwing\[ray\]"):
        lapwing.sweep(swept.area, {"width": [1], "height": [1]}, on="ray")
