"""A clock that only tests move, and a port that dies at its n-th call."""

from __future__ import annotations

from ironburst.ports import Uptime

T0 = 1_795_262_400.0  # 2026-11-21 12:00:00Z


class Crash(BaseException):
    """The controller dies here (kill -9): not an Exception, so nothing may catch it."""


class FakeClock:
    """`at`: true time, which passes; `ahead_s`: by how much the host's clock is wrong."""

    def __init__(self, now: float = T0):
        self.at, self.ahead_s = now, 0.0

    def now(self) -> float:
        return self.at + self.ahead_s

    def uptime(self) -> Uptime:
        return Uptime("boot", self.at)

    def wait(self, seconds: float) -> bool:
        self.at += seconds
        return False


class Breaking:
    """A port whose n-th changing call dies, before or after it has done its work. Ports that share `counter` count
    together.
    """

    READS = (
        "observe",
        "instances",
        "image_id",
        "by_token",
        "interruptions",
        "described",
        "claim",
        "troubles",
        "console",
    )

    def __init__(self, port, counter, at: int | None = None, after: bool = False):
        self._port, self._counter, self._at, self._after = port, counter, at, after

    def __getattr__(self, name):
        method = getattr(self._port, name)

        def call(*args, **kwargs):
            number = None if name in self.READS else next(self._counter)
            if number is not None and number == self._at and not self._after:
                raise Crash(f"before {name}")
            result = method(*args, **kwargs)
            if number is not None and number == self._at:
                raise Crash(f"after {name}")
            return result

        return call
