"""Several launches at one time, in any cloud."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ironburst.ports import CloudError, Instance, LaunchRequest, OutcomeUnknown


def launch_at_once(
    requests: Sequence[LaunchRequest], launch: Callable[[LaunchRequest], list[Instance]], call: str
) -> list[list[Instance] | CloudError]:
    """The answer to each, in a thread of its own: a call takes seconds. `call`: what the cloud names it."""

    def launched(request: LaunchRequest) -> list[Instance] | CloudError:
        try:
            return launch(request)
        except CloudError as error:
            return error
        except Exception as error:  # whatever this is, the answers to the others count, and this one may have started
            return OutcomeUnknown(f"{call}: {type(error).__name__}: {error}")

    if not requests:
        return []
    with ThreadPoolExecutor(len(requests)) as threads:
        return list(threads.map(launched, requests))
