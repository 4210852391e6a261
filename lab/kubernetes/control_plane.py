"""The control plane of the lab `prefix`: its programs as processes of this machine, in .lab/<prefix>/kubernetes/.

plane = ControlPlane("lab")
kubeconfig = plane.up()                      # ready: the API, the scheduler, the controllers, kwok
plane.add_node(NodeSpec("gpu-1", allocatable={"nvidia.com/gpu": "8"}))
plane.kill("kube-apiserver"), plane.start("kube-apiserver")   # same port, same data
plane.down()
"""

import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import requests

from lab.hosts.box import Box
from lab.kubernetes import access, authority, binaries, commands, nodes, stages
from lab.kubernetes.access import ADMIN, Account, Api
from lab.kubernetes.commands import LOOPBACK, ORDER, Layout, Options
from lab.system import LAB_ROOT, LabError, locked, wait_for

READY_S = 90  # three seconds on an idle machine
STOP_S = 10
PORTS = range(20000, 30000)  # none that the kernel gives away for outgoing connections: a restart finds its own free


class ControlPlane:
    """One control plane. Making the object starts nothing; every method works from any process of this user."""

    def __init__(self, prefix: str, root: Path = LAB_ROOT):
        box = Box(prefix, root)  # for its rule of prefixes, and where its folder is
        self.prefix = prefix
        self.root = box.root
        self.folder = box.dir / "kubernetes"
        # marks what belongs to the lab, also for `python -m lab leftovers`
        self._environment = {"LAB_BOX": str(box.dir)}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._tied = False

    # --- life --------------------------------------------------------------------------------------------------

    def up(self, options: Options | None = None, tied: bool = False) -> Path:
        """Start all, and return the administrator's kubeconfig when all is ready.

        With `tied` all of it dies with this process (call from its main thread). LabError if it is up already, or not
        built, or doesn't become ready; then nothing runs and the logs stay.
        """
        options = options or Options()
        for name, groups in options.users.items():
            access.check_name("user", name)
            for group in groups:
                access.check_name("group", group)
        if not binaries.built(self.root):
            raise LabError("the programs aren't built: run 'make kubernetes' (minutes, once)")
        with self._locked():
            if running := self.running():
                raise LabError(
                    f"the control plane of lab {self.prefix!r} is already up ({', '.join(running)}): use another "
                    f"prefix, or end it with 'python -m lab.kubernetes down --prefix {self.prefix}'"
                )
            self._tied = tied
            self._remove()
            self._lay_out(options)
            try:
                self._start_all()
            except BaseException:
                self._stop_all()
                raise
        return self.layout().kubeconfig(ADMIN)

    def down(self) -> list[str]:
        """End everything and remove its files; the names of what ran. Nothing to do is fine."""
        with self._locked(remove=True):
            ended = self._stop_all()
            self._remove()
            with contextlib.suppress(OSError):
                self.folder.parent.rmdir()  # only if there is no box of this prefix
        return ended

    def running(self) -> dict[str, int]:
        """{program: process id} of what lives now, in the order of starting."""
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        found = {program: pid for pid in pids if (program := self._program(pid)) is not None}
        return {program: found[program] for program in ORDER if program in found}

    def status(self) -> dict[str, Any]:
        """{"prefix", "up", "server", "kubeconfig", "programs": {name: {"pid", "resident_mb"}}}; up: all run."""
        running = self.running()
        layout = self.layout() if running else None
        return {
            "prefix": self.prefix,
            "up": list(running) == list(ORDER),
            "server": layout and layout.server,
            "kubeconfig": layout and str(layout.kubeconfig(ADMIN)),
            "programs": {program: {"pid": pid, "resident_mb": _resident_mb(pid)} for program, pid in running.items()},
        }

    # --- single programs ---------------------------------------------------------------------------------------

    def start(self, program: str) -> None:
        """Start one program that was killed, with its port and its data; returns when it is healthy."""
        if program in self.running():
            raise LabError(f"{program} of lab {self.prefix!r} runs already")
        self._spawn(program)
        self._wait(program)

    def kill(self, program: str, sig: signal.Signals = signal.SIGKILL) -> None:
        """Send a program a signal that ends it, and wait until it is gone; one that doesn't run is fine."""
        if (pid := self.running().get(program)) is None:
            return
        os.kill(pid, sig)
        wait_for(lambda: self._gone(program, pid), STOP_S, f"the end of {program} (process {pid})")

    def log(self, program: str) -> Path:
        """Where a program's output goes."""
        return self.folder / "log" / f"{program}.log"

    # --- users and nodes ---------------------------------------------------------------------------------------

    def layout(self) -> Layout:
        """Its files and ports; LabError if it isn't up."""
        layout, _ = self._settings()
        return layout

    def api(self, user: str = ADMIN, impersonate: tuple[str, str] | None = None) -> Api:
        """A client that signs in as `user`; the administrator may act as another (user, group)."""
        layout = self.layout()
        return Api(layout.server, layout.authority, self._account(user).token, impersonate)

    def add_user(self, name: str, groups: Sequence[str] = ()) -> Path:
        """Make a user with a token and return its kubeconfig. It has no rights but those that RBAC gives its name and
        groups. The API server, which reads its tokens at its start only, is restarted.
        """
        layout = self.layout()
        access.check_name("user", name)
        for group in groups:
            access.check_name("group", group)
        with self._locked():
            accounts = access.accounts_of(layout.tokens.read_text())
            if name in (each.name for each in accounts):
                raise LabError(f"lab {self.prefix!r} has a user {name!r} already: {layout.kubeconfig(name)}")
            account = Account(name, secrets.token_hex(16), tuple(groups))
            _write_private(layout.tokens, access.token_file([*accounts, account]))
            if "kube-apiserver" in self.running():
                self.kill("kube-apiserver")  # asked to end, it would wait for its watchers
                self.start("kube-apiserver")
            return self._write_kubeconfig(layout, account)

    def add_node(self, node: nodes.NodeSpec) -> None:
        """Register a stand-in node, by the rights that a kubelet of this name has."""
        nodes.register(self.api(impersonate=(f"system:node:{node.name}", "system:nodes")), node)

    # --- inside ------------------------------------------------------------------------------------------------

    def _locked(self, remove: bool = False) -> contextlib.AbstractContextManager[None]:
        return locked(self.root / "locks" / f"{self.prefix}.kubernetes.lock", remove)

    def _remove(self) -> None:
        if self.folder.is_dir():
            shutil.rmtree(self.folder)

    def _lay_out(self, options: Options) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o700)
        (self.folder / "log").mkdir()
        ports = dict(zip(commands.LISTENERS, free_ports(len(commands.LISTENERS)), strict=True))
        ports["kube-apiserver"] = options.port or ports["kube-apiserver"]
        programs = str(binaries.folder(self.root))
        settings = {"programs": programs, "ports": ports, "options": asdict(options)}
        (self.folder / "settings.json").write_text(json.dumps(settings))
        layout = self.layout()
        layout.stages.write_text(stages.text())
        layout.certificates.mkdir()
        for name, text in authority.files(options.address, options.known_authority).items():
            _write_private(layout.certificates / name, text)
        users = {**access.BUILT_IN, **options.users}
        accounts = [Account(name, secrets.token_hex(16), tuple(groups)) for name, groups in users.items()]
        _write_private(layout.tokens, access.token_file(accounts))
        _write_private(layout.account_key, authority.private_text(authority.rsa_key()))

    def _settings(self) -> tuple[Layout, Options]:
        try:
            settings = json.loads((self.folder / "settings.json").read_text())
        except FileNotFoundError:
            up = f"python -m lab.kubernetes up --prefix {self.prefix}"
            raise LabError(f"lab {self.prefix!r} has no control plane: start it with '{up}'") from None
        options = Options(**settings["options"])
        return Layout(self.folder, Path(settings["programs"]), settings["ports"], options.address), options

    def _start_all(self) -> None:
        for program in ("etcd", "kube-apiserver"):
            self.start(program)
        layout = self.layout()
        for account in access.accounts_of(layout.tokens.read_text()):
            self._write_kubeconfig(layout, account)
        rest = ORDER[2:]
        for program in rest:
            self._spawn(program)
        for program in rest:
            self._wait(program)
        # without it no pod may be made: the controller manager makes it a moment after it is healthy
        api, path = self.api(), "/api/v1/namespaces/default/serviceaccounts/default"
        wait_for(lambda: _there(api, path), READY_S, "the default ServiceAccount")

    def _spawn(self, program: str) -> None:
        layout, options = self._settings()
        argv = commands.command(program, layout, options)
        if self._tied:  # the signal follows the thread that forks: hence "from its main thread"
            argv = ["setpriv", "--pdeathsig", "KILL", *argv]
        with self.log(program).open("a") as output:
            self._children[program] = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=self.folder,
                env=os.environ | self._environment | {"LAB_KUBERNETES": program},
            )

    def _wait(self, program: str) -> None:
        """Until it is healthy; LabError with its last words if it ends before."""
        layout, child = self.layout(), self._children[program]
        certificate = layout.authority if program == "kube-apiserver" else layout.certificates / f"{program}.crt"

        def healthy() -> bool:
            if child.poll() is not None:
                words = (self.log(program).read_text().strip().splitlines() or ["no message"])[-1]
                raise LabError(f"{program} of lab {self.prefix!r} ended at its start: {words} ({self.log(program)})")
            with contextlib.suppress(requests.RequestException, OSError), requests.Session() as session:
                session.trust_env = False
                url = commands.health(layout, program)
                return session.get(url, timeout=2, verify=str(certificate)).ok
            return False

        wait_for(healthy, READY_S, f"{program} of lab {self.prefix!r} healthy ({self.log(program)})", pause=0.05)

    def _program(self, pid: int) -> str | None:
        """The program of this lab that a process is; None if it is none, or has ended."""
        try:
            environ = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            return None  # it ended while we looked, or is another user's
        if f"LAB_BOX={self._environment['LAB_BOX']}".encode() not in environ:
            return None
        return next((each.decode().partition("=")[2] for each in environ if each.startswith(b"LAB_KUBERNETES=")), None)

    def _gone(self, program: str, pid: int) -> bool:
        if (child := self._children.get(program)) is not None:
            child.poll()  # reaps it
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            # a process that ends has its ports a moment longer than its environment, until its last thread is gone
            return state in "ZX" and len(list(Path(f"/proc/{pid}/task").iterdir())) <= 1
        except (FileNotFoundError, ProcessLookupError):
            return True

    def _stop(self, program: str) -> None:
        try:
            self.kill(program, signal.SIGTERM)
        except LabError:
            self.kill(program, signal.SIGKILL)

    def _stop_all(self) -> list[str]:
        ended = list(self.running())
        for program in reversed(ended):
            self._stop(program)
        return ended

    def _account(self, user: str) -> Account:
        accounts = {each.name: each for each in access.accounts_of(self.layout().tokens.read_text())}
        if user not in accounts:
            raise LabError(f"lab {self.prefix!r} has no user {user!r}; it has: {', '.join(accounts)}")
        return accounts[user]

    def _write_kubeconfig(self, layout: Layout, account: Account) -> Path:
        text = access.kubeconfig(f"lab-{self.prefix}", layout.server, layout.authority.read_bytes(), account)
        _write_private(layout.kubeconfig(account.name), text)
        return layout.kubeconfig(account.name)


def free_ports(count: int) -> list[int]:
    """That many ports of loopback that nobody listens on now."""
    with contextlib.ExitStack() as held:
        found: list[int] = []
        for port in random.sample(PORTS, len(PORTS)):
            listener = held.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                listener.bind((LOOPBACK, port))
                found.append(port)
            if len(found) == count:
                return found
    raise LabError(f"no {count} free ports in {PORTS.start}..{PORTS.stop - 1}")


def _there(api: Api, path: str) -> bool:
    try:
        api.call("GET", path)
    except access.Refused as refusal:
        if refusal.status == 404:
            return False
        raise
    return True


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    aside = path.with_name(f"{path.name}.new")
    aside.unlink(missing_ok=True)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    aside.rename(path)


def _resident_mb(pid: int) -> int:
    """Its resident memory now, in MB (10^6 bytes); 0 if it ended meanwhile."""
    with contextlib.suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
    return 0
