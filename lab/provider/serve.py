"""Serve a stand-in as a plugin process: print the port, then answer until the engine ends the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent import futures

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from lab.provider.service import StandIn

OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


def forget(prefixes: Sequence[str]) -> None:
    """Nothing of the caller's settings may reach the stand-in: variables that begin so are dropped."""
    for name in [each for each in os.environ if each.startswith(tuple(prefixes))]:
        del os.environ[name]


def serve(kind: type[StandIn]) -> None:
    """Until the process ends. The engine's address is the first argument that isn't a flag."""
    server = grpc.server(futures.ThreadPoolExecutor(32), options=OPTIONS)
    engine = next((each for each in sys.argv[1:] if not each.startswith("-")), None)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(kind(engine), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(grace=None)
