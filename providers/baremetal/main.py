"""The provider process: serves BaremetalProvider to the engine that started it.

python -m providers.baremetal.main ENGINE_ADDRESS        (pulumi-resource-baremetal does this)
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from pulumi.provider.experimental.server import ProviderServicer
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, provider_pb2_grpc

from ironburst.adapters.redfish.client import BmcError, hush
from ironburst.baremetal.node import VERSION
from providers.baremetal.provider import BaremetalProvider, NodeError

BMCS_AT_ONCE = 128
"""threads that wait for BMCs; how many nodes Pulumi asks for at once is its --parallel"""


class _Servicer(ProviderServicer):
    """The SDK's servicer, but a failure that is the user's to mend is one message:
    without Python's class and traceback.
    """


def _clean(method: str) -> Callable[..., Any]:
    async def call(self: _Servicer, request: Any, context: Any) -> Any:
        try:
            return await getattr(ProviderServicer, method)(self, request, context)
        except Exception as error:
            # The SDK raises a plain Exception with the traceback in its text; ours is what that was raised from.
            ours = error.__context__
            if isinstance(ours, NodeError | BmcError):
                await context.abort(grpc.StatusCode.FAILED_PRECONDITION, str(ours))
            raise

    return call


for _method in ("Create", "Read", "Update", "Delete"):
    setattr(_Servicer, _method, _clean(_method))


async def serve(engine_address: str) -> None:
    """Serve on a free port of the loopback, print the port (so the engine finds it),
    and go on until the engine ends it or is gone.
    """
    unlimited = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    async with grpc.aio.insecure_channel(engine_address) as channel:
        engine = engine_pb2_grpc.EngineStub(channel)

        async def warn(urn: str, message: str) -> None:
            await engine.Log(engine_pb2.LogRequest(severity=engine_pb2.WARNING, message=message, urn=urn))

        server = grpc.aio.server(options=unlimited)
        servicer = _Servicer([], VERSION, BaremetalProvider(warn), engine_address)
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(servicer, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        print(port, flush=True)
        # asyncio's own has a few threads by the number of cores, and one hung BMC holds one for its whole time
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(BMCS_AT_ONCE))
        parent = os.getppid()
        while os.getppid() == parent:  # an engine that was killed cannot end us
            await asyncio.sleep(1)


def main(argv: list[str]) -> int:
    """Serve the engine that `argv` names; the exit code."""
    addresses = [argument for argument in argv if not argument.startswith("-")]
    if len(addresses) != 1:
        print(
            "pulumi-resource-baremetal: is started by Pulumi, with the address of its engine as the one argument",
            file=sys.stderr,
        )
        return 2
    hush()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(addresses[0]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
