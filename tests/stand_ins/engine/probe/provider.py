"""probe: a provider plugin for the engine's tests. A resource is a file `<PROBE_STORE>/<id>.json`; ids are
`<name>-<n>`.

Inputs with a meaning: `zone` (a change replaces), `slot` (a change replaces, delete first), `hold` (create waits until
the file `<store>/go` exists). Output `serial` is made at create. Knobs (`<store>/knobs`, JSON): fail_create,
fail_update, fail_delete, not_ready (created, but reported as failed to initialise), plain_diff (Diff answers UNKNOWN).
PROBE_FLAGS (words): no_handshake, plain (accepts no secrets). Every call is a JSON line in `<store>/calls`.
"""

import json
import os
import threading
import time
from concurrent import futures
from pathlib import Path

import grpc
from google.protobuf import any_pb2, empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc, status_pb2

STORE = Path(os.environ["PROBE_STORE"])
FLAGS = os.environ.get("PROBE_FLAGS", "").split()
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIG = "4dabf18193072939515e22adb298388d"
HOLD_LIMIT_S = 60
lock = threading.Lock()


def log(call, request=None, **more):
    entry = {"call": call, **more}
    if request is not None:
        entry["name"] = request.urn.rsplit("::", 1)[-1]
    with lock, (STORE / "calls").open("a") as file:
        file.write(json.dumps(entry) + "\n")


def props(struct):
    return json_format.MessageToDict(struct)


def plain(value):
    if isinstance(value, dict):
        return plain(value["value"]) if SIG in value else {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def marked(value, known):
    """`value` with the secret marks of `known`: who accepts secrets has to mark them in Read too."""
    if isinstance(known, dict) and SIG in known:
        return {**known, "value": value}
    if isinstance(known, dict) and isinstance(value, dict):
        return {key: marked(item, known.get(key)) for key, item in value.items()}
    if isinstance(known, list) and isinstance(value, list):
        return [marked(item, known[i] if i < len(known) else None) for i, item in enumerate(value)]
    return value


def struct(value):
    message = struct_pb2.Struct()
    message.update(value)
    return message


def knob(key, name):
    try:
        return name in json.loads((STORE / "knobs").read_text()).get(key, [])
    except FileNotFoundError:
        return False


class Probe(provider_pb2_grpc.ResourceProviderServicer):
    def __init__(self):
        self.config = {}

    def Handshake(self, request, context):
        if "no_handshake" in FLAGS:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, "no handshake")
        return provider_pb2.ProviderHandshakeResponse(accept_secrets="plain" not in FLAGS, accept_resources=False)

    def GetPluginInfo(self, request, context):
        return plugin_pb2.PluginInfo(version="1.0.0")

    def CheckConfig(self, request, context):
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request, context):
        old, new = plain(props(request.old_inputs)), plain(props(request.news))
        keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key) and key != "version")
        some = provider_pb2.DiffResponse.DIFF_SOME if keys else provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(changes=some, diffs=keys, replaces=[key for key in keys if key == "account"])

    def Configure(self, request, context):
        self.config = plain(props(request.args))
        log("Configure", args=self.config, variables=dict(request.variables))
        return provider_pb2.ConfigureResponse(acceptSecrets=False, supportsPreview="no_handshake" not in FLAGS)

    def Cancel(self, request, context):
        log("Cancel")
        return empty_pb2.Empty()

    def Check(self, request, context):
        log("Check", request, olds=plain(props(request.olds)))
        news = props(request.news)
        failures = [provider_pb2.CheckFailure(property="bad", reason="must not be set")] if "bad" in news else []
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def Diff(self, request, context):
        name = request.urn.rsplit("::", 1)[-1]
        old, new = plain(props(request.old_inputs)), plain(props(request.news))
        keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        log("Diff", request, changed=keys, ignore=list(request.ignoreChanges))
        if knob("plain_diff", name):
            return provider_pb2.DiffResponse()
        replaces = [key for key in keys if key in ("zone", "slot")]
        return provider_pb2.DiffResponse(
            changes=provider_pb2.DiffResponse.DIFF_SOME if keys else provider_pb2.DiffResponse.DIFF_NONE,
            diffs=keys,
            replaces=replaces,
            deleteBeforeReplace="slot" in replaces,
        )

    def Create(self, request, context):
        name, news = request.urn.rsplit("::", 1)[-1], props(request.properties)
        log("Create", request, preview=request.preview, timeout=request.timeout, news=news)
        if request.preview:
            return provider_pb2.CreateResponse(properties=struct({**news, "serial": UNKNOWN}))
        if plain(news).get("hold"):
            (STORE / f"held-{name}").touch()
            deadline = time.monotonic() + HOLD_LIMIT_S
            while not (STORE / "go").exists() and time.monotonic() < deadline:
                time.sleep(0.02)
        if knob("fail_create", name):
            context.abort(grpc.StatusCode.UNKNOWN, f"probe: create of {name} was told to fail")
        with lock:
            number = sum(path.name.startswith(f"{name}-") for path in STORE.glob("*.made")) + 1
            (STORE / f"{name}-{number}.made").touch()
        out = {**news, "serial": f"SN-{name}-{number}"}
        self.save(f"{name}-{number}", out)
        if knob("not_ready", name):
            detail = any_pb2.Any()
            detail.Pack(
                provider_pb2.ErrorResourceInitFailed(
                    id=f"{name}-{number}", properties=struct(out), reasons=["not ready yet"]
                )
            )
            status = status_pb2.Status(code=2, message="resource failed to initialise", details=[detail])
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(grpc.StatusCode.UNKNOWN, "resource failed to initialise")
        return provider_pb2.CreateResponse(id=f"{name}-{number}", properties=struct(out))

    def Update(self, request, context):
        name, news = request.urn.rsplit("::", 1)[-1], props(request.news)
        log("Update", request, preview=request.preview, id=request.id)
        out = {**news, "serial": plain(props(request.olds)).get("serial")}
        if knob("fail_update", name):
            context.abort(grpc.StatusCode.UNKNOWN, f"probe: update of {name} was told to fail")
        if not request.preview:
            self.save(request.id, out)
        return provider_pb2.UpdateResponse(properties=struct(out))

    def Delete(self, request, context):
        log("Delete", request, id=request.id, account=self.config.get("account", ""))
        if knob("fail_delete", request.urn.rsplit("::", 1)[-1]):
            context.abort(grpc.StatusCode.UNKNOWN, "probe: delete was told to fail")
        (STORE / f"{request.id}.json").unlink(missing_ok=True)
        return empty_pb2.Empty()

    def Read(self, request, context):
        log("Read", request, id=request.id)
        try:
            stored = json.loads((STORE / f"{request.id}.json").read_text())
        except FileNotFoundError:
            return provider_pb2.ReadResponse()
        known = props(request.inputs) or {key: None for key in stored if key != "serial"}
        inputs = {key: marked(stored[key], known[key]) for key in known if key in stored}
        return provider_pb2.ReadResponse(
            id=request.id, properties=struct(marked(stored, props(request.properties))), inputs=struct(inputs)
        )

    def Invoke(self, request, context):
        args = props(request.args)
        log("Invoke", args=args)
        if request.tok != "probe:index:lookup":
            return provider_pb2.InvokeResponse(failures=[provider_pb2.CheckFailure(property="", reason="told to fail")])
        ids = sorted(path.stem for path in STORE.glob(f"{args['name']}-*.json"))
        return provider_pb2.InvokeResponse(**{"return": struct({"ids": ids})})

    @staticmethod
    def save(id_, out):
        (STORE / f"{id_}.json").write_text(json.dumps(plain(out)))


if __name__ == "__main__":
    server = grpc.server(futures.ThreadPoolExecutor(32))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Probe(), server)
    print(server.add_insecure_port("127.0.0.1:0"), flush=True)
    server.start()
    server.wait_for_termination()
