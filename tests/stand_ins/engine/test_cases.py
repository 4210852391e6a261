"""The shared conformance cases, recorded from the real CLI, where they lie beside the checkout."""

import contextlib
import importlib.util
import io
import json
import os
import subprocess
from argparse import Namespace
from pathlib import Path
from unittest import mock

import pytest

from lab.engine.cli import main

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared" / "engine"
CASES = sorted(path.parent.name for path in SHARED.glob("cases/*/steps.yaml"))


def runner():
    spec = importlib.util.spec_from_file_location("run_cases", SHARED / "run_cases.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "name", CASES or [pytest.param("", marks=pytest.mark.skip(f"no conformance cases in {SHARED}"))]
)
def test_case(name: str, tmp_path: Path, monkeypatch):
    run_cases = runner()
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    run = run_cases.Run(
        SHARED / "cases" / name, Namespace(verbs=run_cases.VERBS, timeout=120, verbose=False, slack=5), tmp_path
    )

    def engine(verb, extra=()):
        """In this process, which saves the interpreter's start for each of the hundreds of commands."""
        out, err = io.StringIO(), io.StringIO()
        argv = [*run_cases.VERBS[verb].split(), *extra, "--cwd", str(run.proj)]
        with (
            mock.patch.dict(os.environ, run.env, clear=True),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = main(argv)
        return subprocess.CompletedProcess(argv, code, out.getvalue(), err.getvalue())

    run.engine = engine
    expected = json.loads((SHARED / "cases" / name / "expected.json").read_text())
    assert run_cases.differences(expected, run.run(), strict=True) == []
