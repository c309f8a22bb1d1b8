"""The runner: what is finished is stored, nothing finished is computed again, and order does not matter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from reproduction import DataSet, Experiment, Method, Results, run
from reproduction.command import UNITS, write_output
from reproduction.tasks import Store
from tests.reproduction import tiny

ROOT = Path(__file__).parents[2]
SECONDS = 0.2
"""That a unit takes, so that there is a middle to kill it in."""


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def output(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def start(folder: Path, log: Path, seconds: float) -> subprocess.Popen[bytes]:
    environment = {**os.environ, tiny.LOG: str(log)}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.reproduction.tiny", str(folder), str(seconds)],
        cwd=ROOT,
        env=environment,
        start_new_session=True,
    )


def alive(group: int) -> list[int]:
    """The processes of a group that run, also those that have done nothing yet."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, its_group = path.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(its_group) == group and state != "Z":
            found.append(int(path.parent.name))
    return found


def finish(folder: Path, seconds: float) -> dict[str, bytes]:
    """Compute what is left, in this process, and return the output."""
    experiment, store = tiny.experiment(seconds), Store(folder / UNITS)
    run([experiment], store, quiet=True)
    write_output(experiment, store, folder)
    return output(folder)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("whole_group", [False, True], ids=["parent", "all"])
def test_kill_and_go_on(tmp_path, monkeypatch, whole_group):
    """SIGKILL in the middle, of the parent or of all its processes: what is stored stays, and the rest follows."""
    log, killed = tmp_path / "log", tmp_path / "killed"
    process = start(killed, log, SECONDS)
    end = time.monotonic() + 60
    while len(list(killed.glob(f"{UNITS}/*/[!.]*.json"))) < 4:
        assert process.poll() is None, "ended before it could be killed"
        assert time.monotonic() < end, "nothing was computed"
        time.sleep(0.02)
    if whole_group:
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()
    while alive(process.pid):
        assert time.monotonic() < end, "workers outlive the parent that was killed"
        time.sleep(0.02)

    experiment = tiny.experiment(SECONDS)
    left = {f"{unit.data.name}-{unit.run}-{unit.part}" for unit in Store(killed / UNITS).unfinished(experiment.units())}
    finished = len(experiment.units()) - len(left)
    assert 4 <= finished < len(experiment.units())
    assert not list(killed.glob("*.md"))
    # Each finished unit is complete and readable.
    assert len(Results.stored(experiment, Store(killed / UNITS))) == finished * 6

    log.unlink()
    monkeypatch.setenv(tiny.LOG, str(log))
    gone_on = finish(killed, SECONDS)
    assert sorted(line.split()[0] for line in lines(log)) == sorted(left)

    assert set(gone_on) == {"tiny.md", "tiny.csv", "tiny.png", "tiny.svg"}
    assert gone_on == finish(tmp_path / "unbroken", seconds=0)


def test_number_of_processes_does_not_matter(tmp_path):
    experiment = tiny.experiment()
    for jobs in (1, 2):
        store = Store(tmp_path / str(jobs) / UNITS)
        outcome = run([experiment], store, jobs=jobs, quiet=True)
        assert (outcome.computed, outcome.found) == (12, 0)
        write_output(experiment, store, tmp_path / str(jobs))
    assert output(tmp_path / "1") == output(tmp_path / "2")


def test_nothing_is_computed_twice(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv(tiny.LOG, str(log))
    store = Store(tmp_path / "units")
    run([tiny.experiment(runs=2)], store, quiet=True)
    # More runs go on where fewer ended; the name does not matter, so two experiments share what is equal.
    both = [tiny.experiment(runs=3), replace(tiny.experiment(runs=3), name="same", notes=())]
    outcome = run(both, store, quiet=True)
    assert (outcome.computed, outcome.found) == (4, 8)
    assert len(lines(log)) == len({line.split()[0] for line in lines(log)}) == 12


CHANGES = [
    {"settings": {"seconds": 1e-9}},
    {"methods": (Method("A", tiny.Shifted, {"shift": 0.1}),)},
    {"version": 2},
    {"seed": 1},
    {"protocol": tiny.fail_on_second},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_changed_definitions_do_not_meet_old_results(tmp_path, change):
    experiment, store = tiny.experiment(), Store(tmp_path)
    run([experiment], store, quiet=True)
    changed = replace(experiment, **change)
    assert len(store.unfinished(experiment.units())) == 0
    assert len(store.unfinished(changed.units())) == len(changed.units())
    assert len(Results.stored(changed, store)) == 0


@pytest.mark.parametrize("change", [{"scaling": "zscore"}, {"fill": "mean"}, {"params": {"delta": 0.2}}])
def test_changed_data_do_not_meet_old_results(change):
    experiment = tiny.experiment()
    data = experiment.sets[0]
    assert experiment.fingerprint(replace(data, **change)) != experiment.fingerprint(data)


def test_what_is_only_shown_does_not_change_the_fingerprint():
    experiment = tiny.experiment()
    data = experiment.sets[0]
    other = replace(experiment, name="x", title="y", notes=(), tables=(), runs=50, parts=9, sets=(data,))
    assert other.fingerprint(replace(data, title="z", note="w")) == experiment.fingerprint(data)


def test_seeds(tmp_path):
    units = tiny.experiment().units()
    seeds = {unit.seed("a") for unit in units}
    assert len(seeds) == 6, "one for each set and run, the same in its parts"
    assert units[0].seed("a") != units[0].seed("b")
    assert units[0].seed("a", 1) == tiny.experiment().units()[0].seed("a", 1)


def test_a_failure_stops_nothing_else(tmp_path):
    cure = tmp_path / "cure"
    experiment = Experiment(
        name="failing",
        title="",
        protocol=tiny.fail_on_second,
        sets=(DataSet("one", make=tiny.blob),),
        settings={"cure": str(cure)},
        runs=3,
    )
    store = Store(tmp_path / "units")
    outcome = run([experiment], store, quiet=True)
    assert outcome.computed == 2
    assert outcome.failed == {"failing": ["failing, one, run 1, part 0: ArithmeticError: no luck"]}
    cure.touch()
    outcome = run([experiment], store, quiet=True)
    assert (outcome.computed, outcome.found, outcome.failed) == (1, 2, {})


def test_missing_data_are_named_and_the_rest_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PAIRLENS_DATA", str(tmp_path))
    experiment = tiny.experiment()
    experiment = replace(experiment, sets=(*experiment.sets, DataSet("no_such_set")))
    finished = []
    outcome = run(
        [experiment],
        Store(tmp_path / "units"),
        finished=lambda one, so_far: finished.append((one.name, so_far.computed)),
    )
    assert outcome.computed == 12
    assert list(outcome.missing["tiny"]) == ["no_such_set"]
    assert finished == [("tiny", 12)]
    assert "tiny: no_such_set is left out. There is no data set 'no_such_set'" in capsys.readouterr().err


def test_missing_extra_is_named(tmp_path):
    experiment = replace(tiny.experiment(), requires=(("no_such_module", "report"),))
    outcome = run([experiment], Store(tmp_path), quiet=True)
    assert outcome.computed == 0
    assert "pip install 'pairlens[report]'" in outcome.missing["tiny"]["left"]


def test_timed_units_are_not_run_in_parallel(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv(tiny.LOG, str(log))
    run([replace(tiny.experiment(runs=1), timed=True)], Store(tmp_path / "units"), jobs=2, quiet=True)
    assert {line.split()[1] for line in lines(log)} == {str(os.getpid())}


@pytest.mark.processes
def test_a_worker_that_dies_is_an_error_with_advice(tmp_path):
    experiment = replace(tiny.experiment(runs=1), protocol=tiny.die)
    with pytest.raises(
        RuntimeError, match=r"a worker process ended suddenly.* start again to go on, with fewer --jobs"
    ):
        run([experiment], Store(tmp_path), jobs=2, quiet=True)


def test_damaged_results_are_refused(tmp_path):
    experiment, store = tiny.experiment(), Store(tmp_path)
    run([experiment], store, quiet=True)
    path = store.path(experiment.units()[0])
    path.write_text(path.read_text()[:-5])
    with pytest.raises(ValueError, match=r"000-00\.json is not a file of results .* Delete it"):
        Results.stored(experiment, store)


def test_what_a_killed_writer_left_is_cleaned_up(tmp_path):
    experiment, store = tiny.experiment(), Store(tmp_path)
    folder = store.path(experiment.units()[0]).parent
    folder.mkdir(parents=True)
    old, young = folder / ".000-00.a.part.json", folder / ".000-00.b.part.json"
    old.write_text('[["A"')
    young.write_text('[["A"')
    os.utime(old, (0, 0))
    outcome = run([experiment], store, quiet=True)
    assert outcome.computed == 12
    assert not old.exists()
    assert young.exists(), "another run may be writing it"


def test_environment_is_left_as_it_was(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    run([tiny.experiment(runs=1)], Store(tmp_path), quiet=True)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
