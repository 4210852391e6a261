"""Pulumi's language host for Python: serves the engine (its address is the argument) on a port that it prints, and runs
the program in this process, by the server that pulumi.automation has for programs of its own.
"""

import gc
import json
import os
import runpy
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2, language_pb2_grpc

ONE_STRING = 131_072
"""bytes that Linux takes as one string of an environment, its end included (MAX_ARG_STRLEN): the official host hands
the configuration over in one
"""


class Host(LanguageServer):
    """The official host's answers, as far as a program needs them."""

    def __init__(self, engine: str):
        super().__init__(lambda: None)
        self.engine = engine

    def Handshake(self, request, context):  # noqa: ARG002
        return language_pb2.LanguageHandshakeResponse()

    def Run(self, request, context):
        """The program of the folder or file that Pulumi.yaml names. What it raised is in the engine's log already."""
        if len(f"PULUMI_CONFIG={json.dumps(dict(request.config))}".encode()) >= ONE_STRING:
            return language_pb2.RunResponse(error=f"fork/exec {sys.executable}: argument list too long")
        program = str(Path(request.info.program_directory) / request.info.entry_point)
        os.chdir(request.pwd)
        sys.argv = [program, *request.args]
        request.args[:] = [self.engine]  # where the server looks for it
        self.program = lambda: (runpy.run_path(program, run_name="__main__"), None)[1]
        result = super().Run(request, context)
        result.bail = bool(result.error)
        if result.bail:
            result.error = ""
        return result


def main() -> None:
    gc.set_threshold(100_000, 20, 50)  # what a program imports stays: to search it for garbage took a sixth of its time
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))  # the engine ends its plugins so
    parent = os.getppid()
    server = grpc.server(ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", -1)])
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(Host(sys.argv[-1]), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    while os.getppid() == parent:  # the engine may be killed
        time.sleep(1)


if __name__ == "__main__":
    main()
