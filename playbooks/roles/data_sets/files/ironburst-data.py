#!/usr/bin/python3
"""ironburst-data [--settings FILE]: bring this node's data sets, before it takes jobs.

Settings (/etc/ironburst/data.json): {"region": NAME, "seconds": so long all of it may take, "sets": {NAME: {"kind":
"lustre" or the cloud's store of objects, "source": ..., "path": ...}}}. lustre: mounted read-only. A store
(ironburst_bucket.py beside this file is that cloud's): every object below bucket/prefix/ is copied
to the node's own disks (its scratch, else the root disk), and the copy is mounted read-only at path. A copy that is
whole is kept: what changes needs a prefix of its own. Exit status 0: all of them are there; 1: one isn't, as one
sentence on stderr. Needs root, who alone reaches the credentials of the instance. Python 3.6 (EL 8).
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import ironburst_bucket as store_of

ROOT = os.environ.get("IRONBURST_DATA_ROOT", "")  # before settings and copies in tests
PART = 64 * 2**20  # bytes of one request, and of one batch of small objects
BATCH = 256  # objects of one batch
WORKERS = 64  # processes at most: one of them gets some 80 MB/s
TRIES = 5  # of a request whose answer breaks off
ROLE_S = 60  # so long a new right may be unknown
LUSTRE_PORT = 988
OPTIONS = "ro,relatime,flock,nosuid,nodev,_netdev"


class DataError(Exception):
    """Why a data set isn't there; one sentence."""


# ---- what is to be copied: values in, values out


def relative(key, prefix):
    """Where an object lies below the data set's folder; None for the mark of a folder. Raises DataError."""
    path = key[len(prefix) :]
    if not path or path.endswith("/"):
        return None
    parts = path.split("/")
    if {"", ".", ".."} & set(parts) or "\0" in path or any(len(part.encode()) > 255 for part in parts):
        raise DataError("the object {!r} has a name that no file can have".format(key))
    return path


def batches(objects):
    """What one worker does at a time: lists of (path, key, etag, offset, bytes), large objects in parts.

    `objects`: (path, key, etag, bytes).
    """
    batch, size = [], 0
    for path, key, etag, length in objects:
        for offset in range(0, length, PART) or [0]:
            part = min(PART, length - offset)
            if batch and (size + part > PART or len(batch) == BATCH):
                yield batch
                batch, size = [], 0
            batch.append((path, key, etag, offset, part))
            size += part
    if batch:
        yield batch


def gigabytes(count):
    """Bytes for people."""
    return "{:.1f} GB".format(count / 1e9)


# ---- the store of objects


def listing(region, bucket, prefix, end):
    """[(path, key, version, bytes)] of the objects below a prefix, which ends with a slash or is empty; asked again
    while a new right may be unknown. Raises DataError.
    """
    place, asked_until = store_of.SCHEME + "{}/{}".format(bucket, prefix), min(end, time.monotonic() + ROLE_S)
    while True:
        try:  # a bucket has the credentials that it began with
            found = list(store_of.Bucket(region, bucket).objects(prefix))
            break
        except Exception as error:  # a client's errors may be made at run time
            if time.monotonic() > asked_until:
                raise DataError("{} can't be listed: {}: {}".format(place, type(error).__name__, error)) from None
        time.sleep(1.0)
    named = [(relative(key, prefix), key, version, length) for key, version, length in found]
    objects = [each for each in named if each[0] is not None]
    if not objects:
        raise DataError("there is no object below {}".format(place))
    return objects


worker = None  # in a worker: its bucket, and the folder


def begin(region, bucket, folder):
    """In each worker."""
    global worker
    worker = (store_of.Bucket(region, bucket), folder)


def fetch(batch):
    """Bytes that were copied, by a worker. Raises DataError: no other error finds its way to the parent."""
    bucket, folder = worker
    for path, key, version, offset, length in batch:
        for attempt in range(1, TRIES + 1):
            try:
                write(os.path.join(folder, path), offset, length, bucket.read(key, version, offset, length))
                break
            except OSError as error:
                raise DataError("{} can't be written: {}".format(path, error.strerror or error)) from None
            except Exception as error:
                if attempt == TRIES or store_of.answered(error):
                    text = "{}{}/{} can't be copied: {}: {}"
                    raise DataError(
                        text.format(store_of.SCHEME, bucket.name, key, type(error).__name__, error)
                    ) from None
            time.sleep(attempt)
    return sum(part[-1] for part in batch)


def write(path, offset, length, body):
    """One part of a file. A body that ends early raises; one that is longer can't be."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o644), "wb") as file:
        file.seek(offset)
        for block in iter(lambda: body.read(2**20), b""):
            file.write(block)
        if file.tell() != offset + length:
            raise EOFError("{} of {} bytes came".format(file.tell() - offset, length))


def copy(name, region, bucket, objects, folder, end):
    """Fill a folder. Raises DataError."""
    total, done, told = sum(each[-1] for each in objects), 0, time.monotonic()
    began = told
    room = os.statvfs(os.path.dirname(folder))
    free = room.f_bavail * room.f_frsize
    if total > free:
        where = os.path.dirname(os.path.dirname(folder))
        raise DataError("{} is {}, and {} has {} free".format(name, gigabytes(total), where, gigabytes(free)))
    os.makedirs(folder)
    workers = min(WORKERS, os.cpu_count() or 1)
    # its end kills the workers
    with multiprocessing.get_context("fork").Pool(workers, begin, (region, bucket, folder)) as pool:
        copied = pool.imap_unordered(fetch, batches(objects))
        while True:
            try:
                done += copied.next(max(0.1, end - time.monotonic()))
            except StopIteration:
                break
            except multiprocessing.TimeoutError:
                text = (
                    "{} of {} of {} were copied in {:.0f} s: raise its pool's boot (a fixed node: data_sets_seconds){}"
                )
                spent = time.monotonic() - began
                raise DataError(text.format(gigabytes(done), gigabytes(total), name, spent, store_of.ELSE)) from None
            if time.monotonic() > told + 30:
                told = time.monotonic()
                print("data: {}: {} of {}".format(name, gigabytes(done), gigabytes(total)), flush=True)
    os.sync()  # before its name says that it is whole
    spent = time.monotonic() - began
    print("data: {}: {} objects, {} in {:.0f} s".format(name, len(objects), gigabytes(total), spent), flush=True)


# ---- the node


def run(*argv):
    """Raises DataError if a command can't be run, hangs or fails."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DataError("{} can't be run: {}".format(argv[0], error)) from None
    if done.returncode:
        said = " ".join(done.stdout.decode(errors="replace").split())
        raise DataError("{} failed: {}".format(" ".join(argv), said or "no message"))


def mounted(path):
    """What is mounted at a path, last; None: nothing."""
    with open("/proc/self/mounts") as file:
        lines = [line.split() for line in file]
    return next((line[0] for line in reversed(lines) if line[1] == path), None)


def store():
    """The folder of copies: on the node's scratch where it has one. Raises DataError."""
    base = ROOT + "/var/lib/ironburst"
    try:
        with open(ROOT + "/etc/ironburst/scratch.json") as file:
            base = ROOT + json.load(file)["path"]
    except FileNotFoundError:
        os.makedirs(base, exist_ok=True)
    else:
        if not os.path.ismount(base):
            raise DataError("there is no scratch at {}: look at ironburst-scratch.service".format(base))
    folder = base + "/.ironburst-data"
    os.makedirs(folder, mode=0o755, exist_ok=True)
    seen = os.lstat(folder)
    if os.path.islink(folder) or seen.st_uid != os.geteuid():  # scratch is everybody's
        raise DataError("{} is not root's: somebody else made it, remove it".format(folder))
    return folder


def bring_copy(name, declared, region, end):
    """A copy, mounted read-only. Copies of the same set's earlier sources go."""
    bucket, _, prefix = declared["source"].partition("/")
    path, home = declared["path"], store()
    ours = "{}-{}".format(name, hashlib.sha256(declared["source"].encode()).hexdigest()[:12])
    folder = os.path.join(home, ours)
    there = os.path.isdir(folder)
    if mounted(path) and not (there and os.path.samefile(path, folder)):
        run("umount", path)
    for other in os.listdir(home):
        if other != ours and re.match(re.escape(name) + r"-[0-9a-f]{12}(\.part)?$", other):
            shutil.rmtree(os.path.join(home, other))
    if not there:
        objects = listing(region, bucket, prefix + "/" if prefix else "", end)
        copy(name, region, bucket, objects, folder + ".part", end)
        os.rename(folder + ".part", folder)
    os.makedirs(path, exist_ok=True)
    if not mounted(path):
        run("mount", "--bind", folder, path)
    run("mount", "-o", "remount,bind,ro,nosuid,nodev", path)


def bring_lustre(name, declared, _region, _end):
    """A mount. Its port is asked first: a security group that lets nothing in lets a mount hang."""
    source, path = declared["source"], declared["path"]
    host = source.partition("@")[0]
    if mounted(path) == source:
        return
    if mounted(path):
        run("umount", path)
    if not shutil.which("mount.lustre"):
        raise DataError("there is no client of Lustre for {}: bake the image anew, or converge the node".format(name))
    try:
        socket.create_connection((host, LUSTRE_PORT), timeout=20).close()
    except OSError as error:
        text = "{} does not answer at port {} ({}): its security group has to let in 988 and 1018-1023 of the nodes'"
        raise DataError(text.format(host, LUSTRE_PORT, error)) from None
    os.makedirs(path, exist_ok=True)
    run("mount", "-t", "lustre", "-o", OPTIONS, source, path)


BRING = {"lustre": bring_lustre, store_of.KIND: bring_copy}


def bring(settings):
    """All of them, those that are quick first. Raises DataError."""
    end = time.monotonic() + settings["seconds"]
    for name, declared in sorted(settings["sets"].items(), key=lambda item: (item[1]["kind"], item[0])):
        if declared["kind"] not in BRING:
            raise DataError("{} is of kind {}, which this image doesn't know".format(name, declared["kind"]))
        BRING[declared["kind"]](name, declared, settings["region"], end)
        print("data: {} is at {}".format(name, declared["path"]), flush=True)


def main():
    """The exit status."""
    parser = argparse.ArgumentParser(description="bring this node's data sets")
    parser.add_argument("--settings", default=ROOT + "/etc/ironburst/data.json")
    os.umask(0o022)
    try:
        with open(parser.parse_args().settings) as file:
            bring(json.load(file))
    except (DataError, OSError, ValueError, KeyError) as error:
        print("data: {}".format(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
