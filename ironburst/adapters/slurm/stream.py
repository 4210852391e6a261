"""What a command says, piece by piece as it says it: an answer of a gigabyte is nowhere in memory."""

from __future__ import annotations

import math
import os
import select
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO, Any

_PIECE = 1 << 20  # bytes
_BEGINS = 4096  # bytes: enough to say what was answered instead


class TooMuch(Exception):
    """A command said more than was wanted of it, and was ended."""


class Streamed:
    """The output of one command, which `reader` reads as it comes. `bytes`: of it."""

    def __init__(self, reader: Callable[[Iterator[bytes]], Any], most: float = math.inf):
        """`most`: bytes that are wanted of it."""
        self._reader, self._most, self._began = reader, most, b""
        self.answer: Any = None
        self.error: ValueError | None = None  # of the reader
        self.bytes = 0

    def run(
        self, argv: Sequence[str], *, input: bytes, timeout: float, env: Mapping[str, str], capture_output: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """As subprocess.run, but that it times out when the command is silent for so long, however long reading all of
        it takes; `stdout` is how it began. Raises TooMuch.
        """
        del capture_output
        with tempfile.TemporaryFile() as errors:
            pipe = subprocess.PIPE
            process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=errors, env=env, pipesize=_PIECE)
            assert process.stdin and process.stdout
            try:
                with suppress(BrokenPipeError), process.stdin as stdin:  # a few lines: the pipe takes them
                    stdin.write(input)
                pieces = self._pieces(process.stdout, timeout)
                try:
                    self.answer = self._reader(pieces)
                except ValueError as error:
                    self.error = error
                for _ in pieces:  # so that it ends by itself, and says how
                    pass
                code = process.wait(timeout)
            except (TimeoutError, subprocess.TimeoutExpired):
                raise subprocess.TimeoutExpired(list(argv), timeout) from None
            finally:
                process.kill()
                process.wait()
                process.stdout.close()
            errors.seek(0)
            return subprocess.CompletedProcess(argv, code, self._began, errors.read())

    def _pieces(self, pipe: IO[bytes], timeout: float) -> Iterator[bytes]:
        poll = select.poll()
        poll.register(pipe, select.POLLIN | select.POLLHUP)
        while True:
            if not poll.poll(timeout * 1000):
                raise TimeoutError
            if not (piece := os.read(pipe.fileno(), _PIECE)):
                return
            self.bytes += len(piece)
            if self.bytes > self._most:
                raise TooMuch
            if len(self._began) < _BEGINS:
                self._began = (self._began + piece)[:_BEGINS]
            yield piece
