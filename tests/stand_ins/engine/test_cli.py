"""lab/engine: command line, files, locks, signals, secrets."""

import base64
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from lab.engine.secrets import Crypter
from tests.stand_ins.engine.probe.harness import FLAGS, Project, initialised_project, wait_until  # noqa: F401  (a fixture)

BANNER = "lab/engine, a stand-in for the pulumi CLI"


def alive(word: str) -> list[int]:
    """Processes whose environment or command line holds `word` (a test's own folder)."""
    living = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            text = (process / "cmdline").read_text() + (process / "environ").read_text()
            state = (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if word in text and state != "Z":
            living.append(int(process.name))
    return living


def test_the_first_line_says_what_it_is(project: Project):
    project.program("")
    plain = project.run("preview", "--non-interactive")
    assert plain.out.splitlines()[0] == BANNER
    machine = project.run("preview", "--non-interactive", "--json")
    assert machine.err.splitlines()[0] == BANNER and json.loads(machine.out)["changeSummary"] == {"create": 1}


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["up"], 1, "--yes"),
        (["up", "--yes", "--target", "x"], 1, "unrecognized arguments: --target x"),
        (["preview", "--parallel", "0"], 1, "--parallel is 0"),
        (["stack", "output", "none"], 1, "no output 'none'"),
    ],
)
def test_bad_flags_are_one_sentence(project: Project, arguments, code, says):
    done = project.run(*arguments)
    assert done.code == code and says in done.err and "Traceback" not in done.err


def test_exit_code_of_a_missing_stack(project: Project):
    project.setenv(PULUMI_BACKEND_URL=f"file://{project.folder}")
    done = project.run("preview")
    assert done.code == 6 and "no stack named 'organization/t/dev'" in done.err
    project.setenv(PULUMI_BACKEND_URL="https://example.org")
    assert "only under file://" in project.run("preview").err


def test_an_existing_salt_stays_and_must_fit_the_passphrase(project: Project):
    text = "# by hand\n" + project.config_file.read_text() + "config:\n  t:a: 1 # note\n"
    project.config_file.write_text(text)
    project.program('pulumi.export("a", pulumi.Config().require_int("a"))')
    assert project.run("stack", "rm", "--yes", "--preserve-config").code == 0
    project.init()
    project.up()
    assert project.config_file.read_text() == text and project.outputs() == {"a": 1}
    project.setenv(PULUMI_CONFIG_PASSPHRASE="wrong")
    done = project.run("up", *FLAGS)
    assert done.code == 1 and "incorrect passphrase" in done.err


def test_a_new_salt_is_one_line_in_front_of_the_file(tmp_path, monkeypatch):
    made = Project(tmp_path, monkeypatch)
    made.config_file.write_text("# mine\nconfig:\n  t:a: b\n")
    made.init()
    first, rest = made.config_file.read_text().split("\n", 1)
    assert first.startswith("encryptionsalt: v1:") and rest == "# mine\nconfig:\n  t:a: b\n"


def test_passphrase_form_is_the_clis():
    """Made by the CLI 3.260.0 with the passphrase `conformance` (protocol notes, case 10)."""
    crypter = Crypter("conformance", "v1:u+AY4sVDp1A=:v1:LaR7HGJQjcKXG41+:J+xeuX/SiFEEz3vGV8VkXtwK/fGnEg==")
    assert crypter.decrypt("v1:0XGQORtcaIeJyW2e:dw1hFfdf7L1fx7diEorD71ZXxXtbUUkC8oG+") == "open-sesame"
    assert base64.b64decode(crypter.encrypt("x").split(":")[1]) != base64.b64decode(crypter.encrypt("y").split(":")[1])


def test_structured_and_secret_configuration(project: Project):
    crypter = Crypter("correct", project.config_file.read_text().split("encryptionsalt: ")[1].strip())
    project.config_file.write_text(
        project.config_file.read_text()
        + f"""config:
  t:mac: 02:00:00:00:00:10
  t:when: 2026-01-02
  t:on: yes
  t:site: {{user: admin, gpus: 8, time: 12:30:45, password: {{secure: "{crypter.encrypt("hush-pw")}"}}}}
"""
    )
    project.program(
        'c = pulumi.Config()\nprint("the password is hush-pw")\n'
        'pulumi.export("site", c.require_secret_object("site"))\n'
        'pulumi.export("texts", [c.require("mac"), c.require("when"), c.require("on")])'
    )
    done = project.up()
    assert "the password is [secret]" in done.messages and "hush-pw" not in done.out + done.err
    assert project.outputs()["texts"] == ["02:00:00:00:00:10", "2026-01-02", "yes"]
    assert project.outputs("--show-secrets")["site"] == {
        "user": "admin",
        "gpus": 8,
        "time": "12:30:45",
        "password": "hush-pw",
    }
    assert project.outputs()["site"] == "[secret]"


def test_export_and_import(project: Project):
    project.program(
        'a = Thing("a", value=pulumi.Output.secret("hush"))\nThing("b", value=a.serial)\npulumi.export("b", 1)'
    )
    project.up()
    file = project.folder / "state.json"
    state = project.deployment("--show-secrets")
    file.write_text(json.dumps({"version": 3, "deployment": state}))
    assert project.run("stack", "import", "--file", str(file)).code == 0
    assert "hush" not in project.run("stack", "export").out
    assert project.up("--expect-no-changes").changes == {"same": 3}
    kept = project.run("stack", "export").out
    for broken, says in [
        ({**state, "resources": state["resources"][::-1]}, "does not stand before it"),
        ({**state, "manifest": {**state["manifest"], "magic": "x"}}, "damaged"),
        ({**state, "resources": [{**state["resources"][0], "taint": True}]}, "'taint' is not implemented"),
    ]:
        file.write_text(json.dumps({"version": 3, "deployment": broken}))
        done = project.run("stack", "import", "--file", str(file))
        assert done.code == 1 and says in done.err
    assert project.run("stack", "export").out == kept


def test_a_second_up_is_refused_and_an_interrupt_stops_cleanly(project: Project):
    project.program('a = Thing("a", hold=True)\nThing("b", value=a.serial)')
    first = project.start("up", *FLAGS)
    project.wait_for("held-a")
    done = project.run("up", *FLAGS)
    assert done.code == 1 and "the stack is currently locked by 1 lock(s)" in done.err
    assert [o["type"] for o in project.deployment()["pending_operations"]] == ["creating"]

    first.send_signal(signal.SIGTERM)
    wait_until(lambda: any(c["call"] == "Cancel" for c in project.calls()), "Cancel at the provider")
    (project.store / "go").touch()
    done = project.finish(first)
    assert done.code == 1 and "update canceled" in done.messages
    deployment = project.deployment()
    assert "pending_operations" not in deployment
    assert set(project.resources()) == {"t-dev", "a"} and project.stored() == ["a-1"]
    wait_until(lambda: not alive(str(project.store)), "end of plugins and program")
    assert project.up().changes == {"same": 2, "create": 1}


def test_nothing_outlives_a_killed_engine_and_the_next_run_knows(project: Project):
    project.program('Thing("a", hold=True)')
    first = project.start("up", *FLAGS)
    project.wait_for("held-a")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    wait_until(lambda: not alive(str(project.store)), "end of plugins and program")
    assert "locked" in project.run("up", *FLAGS).err
    assert project.run("cancel").code == 0
    (project.store / "go").touch()
    done = project.up()
    assert "interrupted while creating" in done.messages and done.changes["create"] == 1
    project.refresh()
    assert [o["type"] for o in project.deployment()["pending_operations"]] == ["creating"]
    project.refresh("--clear-pending-creates")
    assert "pending_operations" not in project.deployment()


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ('pulumi.StackReference("x")', "built-in type 'pulumi:pulumi:StackReference' is not implemented"),
        ('Thing("a", opts=Options(import_="x"))', "'importId' is not implemented"),
        (
            'Thing("a", file=pulumi.StringAsset("x"))',
            "resource 'a' of type probe:index:Thing: lab/engine does not implement assets",
        ),
        (
            'pulumi.runtime.invoke("pulumi:pulumi:getResource", {})',
            "built-in type 'pulumi:pulumi:getResource' is not implemented",
        ),
        ('Thing("a", value=1)\nThing("a", value=2)', "Duplicate resource URN"),
        ('Thing("a", bad=1)', "bad: must not be set"),
        ('pulumi.CustomResource("other:index:Thing", "o")', "no provider plugin for the package 'other'"),
        ('raise pulumi.RunError("no such hall")', "no such hall"),
        ("import os; os._exit(3)", "the program ended with the exit code 3"),
    ],
)
def test_what_cannot_be_done_is_said_in_the_preview_already(project: Project, program: str, says: str):
    project.program(program)
    messages = "\n".join(d["message"] for d in project.preview(code=1)["diagnostics"])
    assert says in messages
    assert project.calls("Create", "Update", "Delete") == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"runtime": "nodejs"}, "runs only python programs"),
        ({"plugins": {"analyzers": []}}, "plugins.analyzers is not implemented"),
        ({"name": "a b"}, "name must be made of"),
    ],
)
def test_projects_that_are_refused(project: Project, change: dict, says: str):
    path = project.folder / "Pulumi.yaml"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    done = project.run("preview")
    assert done.code == 1 and says in done.err


def test_as_a_command(project: Project):
    """The way others start it: `python -m lab.engine` in the project's folder."""
    process = project.start("stack", "output", "--json")
    assert isinstance(process, subprocess.Popen)
    done = project.finish(process)
    assert done.code == 0 and json.loads(done.out) == {} and done.err.strip() == BANNER


@pytest.mark.parametrize("flag", ["--yes", "--skip-preview"])
def test_looking_and_doing_are_not_asked_for_together(project: Project, flag):
    project.program('Thing("a", value=1)')
    refused = project.run("refresh", "--preview-only", flag, "--non-interactive")
    assert refused.code != 0 and f"{flag} and --preview-only cannot be used together" in refused.err
