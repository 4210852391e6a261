"""An API server that answers for its version alone: python -m tests.version_server FOLDER ADDRESS PORT STATUS VERSION

FOLDER has apiserver.crt and apiserver.key. It prints its port when it listens; port 0 is a free one.
"""

import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def main(folder: str, address: str, port: str, status: str, version: str) -> None:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(int(status) if self.path == "/version" else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"gitVersion": version} if version else []).encode())

    server = ThreadingHTTPServer((address, int(port)), Answer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{folder}/apiserver.crt", f"{folder}/apiserver.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
