"""What a cloud answers instead of a result: errors named after what to do next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class CloudError(Exception):
    """A cloud call without result. `code` is the provider's own error code, empty if there was none."""

    def __init__(self, text: str, code: str = ""):
        super().__init__(text)
        self.code = code


class CapacityError(CloudError):
    """Nothing was started here and now; another place may do."""


class InsufficientCapacity(CapacityError):
    """No such machines in this zone and market now: cool this place down and take the next one, as a new attempt."""


class TooExpensive(InsufficientCapacity):
    """This zone and market costs more now than we pay, for any number of machines: as no capacity for one."""


class QuotaReached(CapacityError):
    """The account's limit, the same in every zone: cool the whole market of the pool down; reported if it stays."""


class Refused(CloudError):
    """Nothing was done: rights, the account, credentials, our clock, something that isn't there (yet), or a code that
    we don't know. Ask again later, less and less often; reported if it stays.
    """


class LaunchFailed(Refused):
    """The cloud took the launch, couldn't do it, and took all of it back. Unlike another refusal this one is about the
    launch itself, also where a call before it had no answer.
    """


class NeverUp(LaunchFailed):
    """Its machines ran, for minutes that are paid for, and didn't report that they were up: as nodes that don't join,
    their image may be the cause, wherever it is asked for.
    """


class Malformed(Refused):
    """Our request itself is wrong, and the same one always will be: close the pool, report it."""


class TokenMismatch(Refused):
    """The token was used before, with other parameters or for instances that have ended: never take a new one before
    looking for instances of this one.
    """


class OutcomeUnknown(CloudError):
    """No answer, or the provider's own fault: it may have happened. Repeat with the same token and parameters."""


class UnderWay(OutcomeUnknown):
    """The cloud has taken the launch and works at it, for minutes: no failure. Ask the same again."""

    def __init__(self, text: str):
        super().__init__(text, type(self).__name__)


class Throttled(OutcomeUnknown):
    """Slowed down: repeat unchanged, later."""


class SomeSilent(CloudError):
    """Of several clouds some gave no answer. `answer`: that of the others, less than was asked for; `silent`: by
    provider, why. Who asks for the whole has none.
    """

    def __init__(self, answer: Any, silent: Mapping[str, CloudError]):
        super().__init__("; ".join(f"{provider}: {error}" for provider, error in silent.items()))
        self.answer, self.silent = answer, {provider: str(error) for provider, error in silent.items()}
