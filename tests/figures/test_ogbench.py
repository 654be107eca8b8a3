import dataclasses

from lapwing.figures import ogbench
from lapwing.figures.grid import Run


def rows_of(run: Run, success: float) -> list[dict]:
    told = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    return [told | {"metric": "success", "step": None, "value": success}]


def test_an_interval_is_in_percent_and_holds_its_mean():
    cells = [run for run in ogbench.runs("quick", 2) if run.method == "reach"]
    first = [run for run in cells if run.environment == "medium-navigate"]
    rows = [row for run, share in zip(first, (90.0, 96.0), strict=True) for row in rows_of(run, share)]
    found = ogbench._success(rows, "medium-navigate", "reach")
    assert found.mean == 93.0
    assert 0 <= found.low < 93.0 < found.high <= 100
    line = next(line for line in ogbench.describe(rows, "quick") if line.startswith("| medium-navigate"))
    assert "93.0 [" in line
