"""Cells on a GPU: the same cells, and a folder of their own."""

import sys
from pathlib import Path

import pytest

from discreet.errors import BackendError
from discreet.experiments import _folder as folder
from discreet.experiments import _gpu as gpu
from discreet.experiments import _reproduce as again
from discreet.experiments._experiment import Scale, Task
from discreet.experiments._play import contender
from discreet.experiments._run import InMemory

sys.path.insert(0, str(Path(__file__).parent.parent / "simulation"))
from host_device import Host


def test_every_cell_is_run_and_read_at_its_checkpoints() -> None:
    tasks = [
        Task("some", contender("gaussian", rounds=rounds, seed=seed))
        for rounds in (50, 80)
        for seed in (3, 8)
    ]
    kept, told = InMemory(), list[int]()
    gpu.run(tasks, kept, Host(), on_cell=told.append)
    assert told[-1] == 4
    for task in tasks:
        finished = kept.finished[task.key]
        assert [one.round for one in finished.readings] == task.cell.checkpoints().tolist()
    gpu.run(tasks, kept, Host(), on_cell=told.append)
    assert told[-1] == 4


@pytest.mark.parametrize("name", ["dimension", "variants", "shifts", "price"])
def test_seeds_can_be_added_to_every_cell(name: str) -> None:
    request = again.Request(name=name, scale=Scale.SMOKE, out=Path("x"), jobs=1, seeds=5)
    seeds: dict[str, set[int]] = {}
    for task in request.plan().tasks:
        fields = task.settings
        seed = fields.pop("seed")
        seeds.setdefault(repr(fields), set()).add(seed)
    assert {frozenset(found) for found in seeds.values()} == {frozenset(range(5))}
    assert "--seeds 5" in request.command()


def test_without_a_gpu_no_folder_is_claimed_and_a_finished_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    request = again.Request(
        name="dimension", scale=Scale.SMOKE, out=tmp_path / "out", jobs=1, device="cuda"
    )
    with pytest.raises(BackendError, match="device"):
        again.reproduce(request)
    assert not request.out.exists()
    plan = request.plan()
    with folder.opened(request.out, plan) as kept:
        gpu.run(plan.tasks, kept, Host())
    assert again.reproduce(request).cells == len(plan.tasks)


def test_a_folder_is_for_one_device() -> None:
    plans = [folder.Plan(name="x", scale="smoke", tasks=(), device=one) for one in ("cpu", "cuda")]
    assert "device" not in plans[0].manifest()
    assert plans[1].manifest()["device"] == "cuda"
