"""`--on dask:ADDRESS`: real Dask workers, each a process of its own, on loopback."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from ironburst import __version__, cli
from ironburst.cli import fit, simulate, workers
from ironburst.controller import declared_site
from ironburst.replay import traces
from ironburst.system.bad_input import BadInput

distributed = pytest.importorskip("distributed")
STACK = "stacks/Pulumi.prod.yaml"
PATIENCE_S = 300  # of a loaded machine
JOBS = "submit_s,duration_s,num_gpus\n" + "".join(f"{n * 400},{1200 + n % 7 * 900},{1 + n % 16}\n" for n in range(420))


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def on(cluster):
    with distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2, timeout=PATIENCE_S)
    return f"dask:{cluster.scheduler_address}"


@pytest.fixture
def jobs(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS)
    return path


def said(capsys, *argv):
    assert cli.main([*map(str, argv), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    found.pop("wall_s", None)
    return found


@pytest.mark.parametrize(
    "verb",
    [
        ("simulate", "--bound-seconds", "0"),
        ("fit", "--jobs", "420"),
        ("size", "--owned-usd-per-gpu-hour", "2", "--nodes", "2,8", "--jobs", "300"),
    ],
    ids=lambda verb: verb[0],
)
def test_a_verb_says_the_same_as_here(verb, on, jobs, capsys):
    name, *more = verb
    argv = (name, jobs, "--config", STACK, *more)
    assert said(capsys, *argv, "--on", on) == said(capsys, *argv)


def test_a_play_whose_worker_is_killed_is_played_again(on, jobs, tmp_path):
    declared, part, mark = declared_site.declared(STACK), traces.read(jobs), tmp_path / "pid"
    target = declared.policy.limits.target

    def stalled(mark, play, *arguments):
        if not mark.exists():
            mark.with_suffix(".new").write_text(str(os.getpid()))
            mark.with_suffix(".new").rename(mark)
            while True:  # until it is killed
                time.sleep(0.1)
        return play(*arguments)

    def kill():
        ends_s = time.monotonic() + PATIENCE_S
        while not mark.exists() and time.monotonic() < ends_s:
            time.sleep(0.05)
        os.kill(int(mark.read_text()), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with workers.workers(on) as where:
        got = where.run(stalled, mark, fit.play, declared, part, target, 0.1)
    killer.join()
    here = fit.play(declared, part, target, 0.1)
    assert int(mark.read_text()) != os.getpid()
    assert (got.usd, got.not_rented) == (here.usd, here.not_rented) and (got.start_s == here.start_s).all()


def test_another_ironburst_on_a_worker_is_one_sentence(on, jobs, capsys):
    def change(version):
        def there():  # runs on each worker
            import sys

            import kept_ironburst as kept

            kept.__version__ = version
            sys.modules["ironburst"] = kept if version else None

        return there

    def keep():
        import sys

        import ironburst

        sys.modules["kept_ironburst"] = ironburst

    with distributed.Client(on.removeprefix("dask:"), set_as_default=False) as client, workers.workers(on) as where:
        client.run(keep)
        try:
            for version, has in (("0.0.1", "has ironburst 0.0.1"), ("", "has no ironburst")):
                client.run(change(version))
                assert cli.main(["simulate", str(jobs), "--config", STACK, "--on", on]) == 2
                told = capsys.readouterr().err
                assert f"{has}, and here it is {__version__}: install the same on both" in told
                assert told.count("\n") == 1
            client.run(change("0.0.1"))
            with pytest.raises(BadInput, match=r"a Dask worker has ironburst 0\.0\.1, and where"):
                where.run(len, "a worker that came later")
        finally:
            client.run(change(__version__))


@pytest.mark.parametrize(
    "on, told",
    [
        ("slurm", "--on is 'slurm'; allowed is dask: and a scheduler's address"),
        ("dask:", "allowed is dask: and a scheduler's address"),
        ("dask:tcp://127.0.0.1:1", "there is no Dask scheduler"),
        ("dask:nowhere://x", "there is no Dask scheduler"),
    ],
)
def test_what_is_no_scheduler_is_one_sentence(on, told, jobs, capsys, monkeypatch):
    monkeypatch.setattr(workers, "LONGEST_CONNECT_S", 1)
    assert cli.main(["simulate", str(jobs), "--config", STACK, "--on", on]) == 2
    assert told in capsys.readouterr().err


def test_without_the_extra_it_says_what_to_install(jobs, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert cli.main(["simulate", str(jobs), "--config", STACK, "--on", "dask:tcp://127.0.0.1:1"]) == 2
    assert "pip install 'ironburst[dask]'" in capsys.readouterr().err


def test_dask_is_not_imported_before_it_is_asked_for():
    program = (
        f"import sys, {simulate.__name__}, {workers.__name__}; assert not {{'dask', 'distributed'}} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
