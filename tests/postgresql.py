"""A real PostgreSQL for tests: Debian's, from where its package has it or unpacked for the tests alone, as an
unprivileged user with its socket in a folder of its own. A database for each ledger.
"""

import atexit
import functools
import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import prometheus

_NUMBERS = itertools.count(1)
USER = "postgres" if os.geteuid() == 0 and "postgres" in {each.pw_name for each in pwd.getpwall()} else "nobody"
AS_USER = ["setpriv", f"--reuid={USER}", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
# as it is at a site, but that no test cuts the power
SETTINGS = "fsync = off\nmax_connections = 60\nlc_messages = 'C'\n"


def programs():
    """The folder of initdb and postgres; skips the test where there is none."""
    pytest.importorskip("psycopg")
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if installed:
        return installed[-1].parent
    if os.geteuid() or not shutil.which("apt-get"):
        pytest.skip("there is no PostgreSQL, and unpacking Debian's needs root and apt-get")
    for version in ("17", "15"):
        if folder := prometheus.unpacked(f"postgresql-{version}"):
            return folder / f"usr/lib/postgresql/{version}/bin"
    pytest.skip("Debian's package postgresql can't be had here")
    raise AssertionError


@functools.cache
def server():
    """`folder` with its socket, and how to `control` it. For as long as this process lives."""
    here = made()
    control(here, "start")
    atexit.register(shutil.rmtree, here.folder, ignore_errors=True)
    atexit.register(control, here, "stop", "-m", "immediate")
    return here


def made(listen="", inside=()):
    """A cluster of databases that doesn't run yet. `inside`: what to put before its commands."""
    bin, folder = programs(), Path(tempfile.mkdtemp(prefix="ironburst-pg-", dir="/tmp"))
    folder.chmod(0o755)
    data = folder / "data"
    data.mkdir()
    if AS_USER:
        for path in (folder, data):
            shutil.chown(path, USER)
    make = [bin / "initdb", "-D", data, "-U", "ironburst", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]
    subprocess.run([*AS_USER, *make], check=True, capture_output=True, cwd="/")
    with (data / "postgresql.conf").open("a") as file:
        file.write(f"{SETTINGS}listen_addresses = '{listen}'\n")
    with (data / "pg_hba.conf").open("a") as file:
        file.write("host all all 10.99.0.0/24 trust\n")
    argv = [*inside, *AS_USER, str(bin / "pg_ctl"), "-D", str(data)]
    return SimpleNamespace(folder=folder, argv=argv)


@contextmanager
def started_in(inside, address):
    """The folder of the socket of a server of its own in a network namespace, which listens there, too."""
    here = made(address, inside)
    try:
        control(here, "start")
        yield here.folder
        control(here, "stop", "-m", "immediate")
    finally:
        shutil.rmtree(here.folder, ignore_errors=True)


def control(here, *words):
    """pg_ctl: start, stop, restart."""
    more = ["-o", f"-k {here.folder}", "-l", str(here.folder / "log")] if words[0] != "stop" else []
    subprocess.run(
        [*here.argv, "-w", *more, *words], check=True, cwd="/", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def query(sql, database="postgres"):
    """Rows, as an administrator."""
    import psycopg

    with psycopg.connect(address(database), autocommit=True) as session:
        cursor = session.execute(sql)
        return cursor.fetchall() if cursor.description else []


def address(database, **more):
    """Of a database of the server."""
    words = "&".join(f"{key}={value}" for key, value in ({"host": server().folder} | more).items())
    return f"postgresql://ironburst@/{database}?{words}"


def ledger_file(path):
    """A new database, and the file that names it: *.url beside `path`."""
    name = f"site{os.getpid()}_{next(_NUMBERS)}"
    query(f"CREATE DATABASE {name}")
    path = path.with_suffix(".url")
    path.write_text(f"# written by a test\n{address(name)}\n")
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_path(request, tmp_path):
    """Where a ledger is to be made: a file, or a database of its own."""
    path = tmp_path / "ledger.sqlite"
    return path if request.param == "sqlite" else ledger_file(path)
