"""lab/pulumi/host.py, in the place of Pulumi's own language host for Python."""

import json

import pytest
from pulumi.runtime.proto import language_pb2

from lab.pulumi.host import ONE_STRING, Host


@pytest.mark.parametrize(("more", "says"), [(0, "argument list too long"), (-1, "")])
def test_a_configuration_that_linux_takes_in_no_string_is_refused(tmp_path, monkeypatch, more, says):
    """As execve does (MAX_ARG_STRLEN, the end included), by which the official host fails."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "__main__.py").write_text("raise SystemExit('it was started')")
    started = []
    monkeypatch.setattr(
        "pulumi.automation._server.LanguageServer.Run", lambda *_: started.append(1) or language_pb2.RunResponse()
    )
    config = {"t:a": ""}
    around = len(f"PULUMI_CONFIG={json.dumps(config)}")
    config["t:a"] = "x" * (ONE_STRING + more - around)
    info = language_pb2.ProgramInfo(program_directory=str(tmp_path), entry_point=".")
    answer = Host("127.0.0.1:1").Run(language_pb2.RunRequest(config=config, pwd=str(tmp_path), info=info), None)
    assert says in answer.error and bool(answer.error) == bool(says) and bool(started) != bool(says)
