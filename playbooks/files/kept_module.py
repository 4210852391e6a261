"""Runs an Ansible module from files that the host keeps, in a process that has imported what all modules import.

playbooks/plugins/connection/ssh_kept.py sends it, to root, in place of Ansible's own program. The process (`serve`)
forks for each module, so that what a module imports, sets or looks up ends with it. It belongs to one ssh connection,
with which it ends, and by whose variable SSH_CONNECTION it and its modules are found when a run is cancelled
(ironburst/adapters/leftovers.py). Whatever is amiss before a module has begun is told by the exit status REFUSED and a
line that begins with SAID.
"""

import _socket  # neither socket nor contextlib: who imports little starts fast
import marshal
import os
import sys

TOP = "/run/ironburst-modules"  # gone at the next boot, and in no image
IDLE_S = 30
OLD_S = 86400
BEGUN = b"B"
REFUSED = 79
SAID = "ironburst-kept: "
LACKING = "files are lacking"
NOT_ROOT = "it is not root who asks"


def main(source, key, arguments):
    """Run a module; it ends by SystemExit.

    `arguments` are those that Ansible gives its own program, with or without the zip file that `key` tells from others;
    `source` is this text.
    """
    try:
        job = {name: arguments[name] for name in ("params", "profile", "module_fqn")}
        job.update(folder=files_of(key, arguments.get("zip_data"), source), cwd=os.getcwd(), umask=umask())
        # whoever looks for logins on the host has to know which one is its own (module_utils/occupants.py)
        job.update(environ=dict(os.environ, IRONBURST_CALLER=str(os.getpid())), python=python())
        by_server(job, source)
        if sys.flags.no_site:
            import site

            site.main()
        use(job["folder"])
    except (OSError, ImportError) as error:
        sys.stderr.write("%s%s\n" % (SAID, error))
        sys.exit(REFUSED)
    run(job)


def use(folder):
    """Import what every module needs, from this folder."""
    sys.path[:] = [folder] + [path for path in sys.path if path not in ("", ".")]
    import ansible.module_utils._internal._ansiballz._loader  # noqa: F401


def run(job):
    """Run the module in this process; it ends by SystemExit."""
    from ansible.module_utils._internal._ansiballz import _loader

    _loader.run_module(
        json_params=job["params"].encode(),
        profile=job["profile"],
        module_fqn=job["module_fqn"],
        modlib_path=job["folder"],
        extensions={},
    )


def run_forked(job):
    """Run the module in a process that was forked for it, and end that as Python would, but for taking down all modules
    and objects: it would write to, and so copy, what is shared with the server.
    """
    import atexit

    try:
        run(job)
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    if not isinstance(code, (int, type(None))):
        sys.stderr.write("%s\n" % code)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit((code or 0) & 0xFF)


# --- the files --------------------------------------------------------------------------------------------------------


def files_of(key, zip_data, source):
    """Folder with the files of this module, and those of others; `zip_data` (base64) may be None. Raises OSError."""
    if os.geteuid() != 0:
        raise OSError(NOT_ROOT)
    try:  # noqa: SIM105
        os.mkdir(TOP, 0o700)
    except FileExistsError:
        pass
    seen = os.lstat(TOP)
    if seen.st_uid != 0 or seen.st_mode & 0o170077 != 0o040000:
        raise OSError("%s is not a folder of root alone" % TOP)
    for name in os.listdir(TOP):
        if os.path.exists(os.path.join(TOP, name, ".has", key)):
            return os.path.join(TOP, name)
    if zip_data is None:
        raise OSError(LACKING)
    return unpacked(key, zip_data, source)


def unpacked(key, zip_data, source):
    """The same for files that are not all there. One folder has one text of a file, whose compiled form stays right.

    This program is among them.
    """
    import base64
    import fcntl
    import io
    import time
    import zipfile

    with zipfile.ZipFile(io.BytesIO(base64.b64decode(zip_data))) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["kept_module.py"] = source.encode()
    lock = os.open(TOP, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    entries = [os.path.join(TOP, name) for name in os.listdir(TOP)]
    fitting = (entry for entry in entries if os.path.isdir(entry) and fits(entry, files))
    folder = next(fitting, os.path.join(TOP, key[:16]))
    forget([entry for entry in entries if entry != folder and os.lstat(entry).st_mtime < time.time() - OLD_S])
    for name, content in files.items():
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".new", "wb") as file:
                file.write(content)
            os.rename(path + ".new", path)
    os.makedirs(folder + "/.has", exist_ok=True)
    open(os.path.join(folder, ".has", key), "w").close()
    os.utime(folder)
    os.close(lock)
    return folder


def fits(folder, files):
    """Whether the folder has no other text of any of these files."""
    for name, content in files.items():
        try:
            with open(os.path.join(folder, name), "rb") as file:
                if file.read() != content:
                    return False
        except FileNotFoundError:
            pass
    return True


def forget(entries):
    """Remove files of other releases, and sockets that a process left that was killed."""
    import shutil

    for entry in entries:
        if os.path.isdir(entry):
            shutil.rmtree(entry, ignore_errors=True)
        else:
            os.unlink(entry)


# --- the process ------------------------------------------------------------------------------------------------------


def python():
    """Tells one Python from what replaces it."""
    seen = os.stat(sys.executable)
    return [seen.st_ino, seen.st_mtime_ns, sys.version]


def umask():
    """Of this process."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def by_server(job, source):
    """Have the module run by the server of this connection, and end as it does; returns where no server has begun."""
    connection, session = ssh_connection()
    if not session:
        return
    server, begun = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM), False
    address = "-".join([job["folder"], *connection.split()[:2]])
    try:
        try:
            server.connect(address)
        except OSError:
            start(address, connection, session, source)
            server.connect(address)
        descriptors = b"".join(number.to_bytes(4, sys.byteorder) for number in (0, 1, 2))
        sent = marshal.dumps(job)
        server.sendmsg([b"%20d" % len(sent)], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)])
        server.sendall(sent)
        begun = server.recv(1) == BEGUN
        status = server.recv(20) if begun else b""
    except OSError:
        status = b""
    if begun:
        os._exit(int(status or b"1"))


def ssh_connection():
    """(SSH_CONNECTION, sshd's pid of that connection); ("", 0) if there is none.

    sudo drops the variable, so it is that of the first process upwards that has it; the first without it is sshd's.
    """
    pid, found, mark = os.getpid(), b"", b"SSH_CONNECTION="
    while pid > 1:
        with open("/proc/%d/environ" % pid, "rb") as file:
            here = [entry for entry in file.read().split(b"\0") if entry.startswith(mark)]
        if found and found not in here:
            return os.fsdecode(found[len(mark) :]), pid
        found = found or b"".join(here[:1])
        with open("/proc/%d/stat" % pid, "rb") as file:
            pid = int(file.read().rpartition(b")")[2].split()[1])
    return "", 0


def start(address, connection, session, source):
    """Start the server; who connects from now on waits for it."""
    import subprocess

    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:  # noqa: SIM105
        os.unlink(address)  # of one that was killed
    except FileNotFoundError:
        pass
    listener.bind(address)
    listener.listen(64)
    server = subprocess.Popen(
        [sys.executable, "-", address, str(listener.fileno()), str(session)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[listener.fileno()],
        start_new_session=True,
        env=dict(os.environ, SSH_CONNECTION=connection),
    )
    server.stdin.write(source.encode())
    server.stdin.close()


def serve(address, number, session):
    """Run modules, each in a process forked from this one, until the connection is closed, or nobody has called for a
    while.
    """
    import gc
    import select
    import signal
    import socket

    listener = socket.socket(fileno=number)
    use(address.rsplit("-", 2)[0])
    from ansible.module_utils.common.json import Direction, get_module_encoder

    for direction in Direction:
        get_module_encoder("legacy", direction)
    gc.freeze()
    first, running = python(), {}
    ended, signals = os.pipe()
    os.set_blocking(signals, False)
    signal.set_wakeup_fd(signals)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    closed = os.pidfd_open(session)
    while listener or running:
        ready = select.select([ended] + [listener, closed] * bool(listener), [], [], IDLE_S)[0]
        if ended in ready:
            os.read(ended, 4096)
            tell_of_the_ended(running)
        job, caller, descriptors = None, None, []
        if listener in ready:
            job, caller, descriptors = received(listener)
        if job and job["python"] == first:
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for other in [listener, *running.values()]:
                    other.close()
                become(job, descriptors)
                caller.sendall(BEGUN)
                caller.close()
                run_forked(job)
            running[pid] = caller
        elif listener and (job or closed in ready or not ready and not running):
            listener = listener.close()
            if os.path.exists(address):
                os.unlink(address)
            caller = caller and caller.close()
        for descriptor in descriptors:
            os.close(descriptor)


def received(listener):
    """(job, connection, its descriptors 0 to 2) of whoever calls; (None, None, []) if that fails."""
    import socket

    descriptors = []
    try:
        caller = listener.accept()[0]
        caller.settimeout(10)
        length, descriptors = socket.recv_fds(caller, 20, 3)[:2]
        sent = b""
        while len(sent) < int(length):
            part = caller.recv(int(length) - len(sent))
            if not part:
                raise OSError("the caller is gone")
            sent += part
        return marshal.loads(sent), caller, descriptors
    except (OSError, ValueError):
        for descriptor in descriptors:
            os.close(descriptor)
        return None, None, []


def become(job, descriptors):
    """Make this process, which was forked, one like its caller's."""
    os.setsid()
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.environ.clear()
    os.environ.update(job["environ"])
    os.umask(job["umask"])
    os.chdir(job["cwd"])
    sys.argv = [""]
    sys.stdin = os.fdopen(0, closefd=False)


def tell_of_the_ended(running):
    """Tell each caller the exit status of its module."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        code = os.waitstatus_to_exitcode(status)
        caller = running.pop(pid)
        try:  # noqa: SIM105
            caller.sendall(b"%20d" % (code if code >= 0 else 128 - code))
        except OSError:
            pass
        caller.close()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
