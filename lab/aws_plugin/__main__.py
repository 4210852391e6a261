"""Serve the plugin: print the port, then answer until the engine ends the process."""

from __future__ import annotations

import os
import sys
from concurrent import futures

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from lab.aws_plugin.provider import AwsStandIn

OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]


def forget_environment() -> None:
    """Nothing of the caller's AWS settings (credentials, profile, endpoints, files) may reach boto3."""
    for name in [n for n in os.environ if n.startswith("AWS_")]:
        del os.environ[name]
    os.environ |= {
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def main() -> None:
    forget_environment()
    server = grpc.server(futures.ThreadPoolExecutor(32), options=OPTIONS)
    engine = next((a for a in sys.argv[1:] if not a.startswith("-")), None)
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(AwsStandIn(engine), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(grace=None)


if __name__ == "__main__":
    main()
