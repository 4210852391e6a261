"""The gRPC services that the program and the plugins call: ResourceMonitor and Engine, on one port."""

import concurrent.futures
import contextlib
import traceback

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc, resource_pb2, resource_pb2_grpc

from lab.engine.deployment import Deployment
from lab.engine.errors import EngineError, Refused, StepFailed, Terminated
from lab.engine.goal import Goal, check_type, goal_of
from lab.engine.program import ORGANIZATION
from lab.engine.properties import UNKNOWN, from_struct, to_struct
from lab.engine.provider import CHANNEL_OPTIONS
from lab.engine.state import make_urn

FEATURES = (
    "SECRETS",
    "RESOURCE_REFERENCES",
    "ALIAS_SPECS",
    "DELETED_WITH",
    "TRANSFORMS",
    "RESOURCE_HOOKS",
    "INVOKE_DEPENDS_ON",
)
SEVERITIES = ("debug", "info", "warning", "error")
EMPTY = empty_pb2.Empty()


def serve(deployment: Deployment) -> tuple[grpc.Server, str]:
    """Start both services; returns the server and its address."""
    # A registration blocks its thread until it is done; the program has at most 4 * parallel of them under way.
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(deployment.parallel * 4 + 32), options=CHANNEL_OPTIONS)
    resource_pb2_grpc.add_ResourceMonitorServicer_to_server(Monitor(deployment), server)
    engine_pb2_grpc.add_EngineServicer_to_server(Engine(deployment), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return server, f"127.0.0.1:{port}"


class Engine(engine_pb2_grpc.EngineServicer):
    def __init__(self, deployment: Deployment):
        self._deployment = deployment
        self._root = ""

    def Log(self, request, _context):
        self._deployment.events.diagnostic(SEVERITIES[request.severity], request.message, request.urn)
        return EMPTY

    def GetRootResource(self, _request, _context):
        return engine_pb2.GetRootResourceResponse(urn=self._root)

    def SetRootResource(self, request, _context):
        self._root = request.urn
        return engine_pb2.SetRootResourceResponse()

    def RequirePulumiVersion(self, _request, _context):
        return engine_pb2.RequirePulumiVersionResponse()

    def StartDebugging(self, _request, context):
        context.abort(grpc.StatusCode.UNIMPLEMENTED, "lab/engine does not implement debugging")


class Monitor(resource_pb2_grpc.ResourceMonitorServicer):
    def __init__(self, deployment: Deployment):
        self._deployment = deployment

    @contextlib.contextmanager
    def _errors(self, context):
        """Engine errors as gRPC statuses; each is reported once, as the run's failure."""
        try:
            yield
        except Terminated:
            context.abort(grpc.StatusCode.UNAVAILABLE, "Resource monitor has terminated, shutting down")
        except EngineError as error:
            self._deployment.fail(str(error), getattr(error, "urn", ""))
            refused = isinstance(error, Refused)
            context.abort(grpc.StatusCode.UNIMPLEMENTED if refused else grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except Exception:
            self._deployment.fail("a bug in lab/engine: " + traceback.format_exc())
            context.abort(grpc.StatusCode.INTERNAL, "a bug in lab/engine")

    def _refuse(self, context, what: str):
        with self._errors(context):
            raise Refused(f"{what} are not implemented by lab/engine")

    def GetDeploymentInfo(self, _request, _context):
        d = self._deployment
        return resource_pb2.DeploymentInfo(
            project=d.project,
            stack=d.stack,
            organization=ORGANIZATION,
            config=d.config.values,
            configSecretKeys=sorted(d.config.secret_keys),
            dryRun=d.preview,
            parallel=d.parallel,
            supportedFeatures=[
                resource_pb2.ResourceMonitorFeature.Value(f"RESOURCE_MONITOR_FEATURE_{name}") for name in FEATURES
            ],
        )

    def SupportsFeature(self, request, _context):
        return resource_pb2.SupportsFeatureResponse(
            hasSupport=request.id
            in ("secrets", "resourceReferences", "aliasSpecs", "deletedWith", "transforms", "resourceHooks")
        )

    def RegisterResource(self, request, context):
        d = self._deployment
        with self._errors(context):
            request = d.callbacks.transform(request)
            goal = goal_of(request)
            d.callbacks.remember_transforms(make_urn(d.stack, d.project, goal.parent, goal.type, goal.name), request)
            new = d.register(goal)
            return resource_pb2.RegisterResourceResponse(
                urn=new.urn,
                id="" if new.id == UNKNOWN else new.id,
                object=to_struct(new.outputs if goal.custom else {}),
                propertyDependencies={},
            )

    def RegisterResourceOutputs(self, request, context):
        with self._errors(context):
            self._deployment.register_outputs(request.urn, from_struct(request.outputs))
            return EMPTY

    def ReadResource(self, request, context):
        with self._errors(context):
            where = f"resource {request.name!r} of type {request.type}"
            check_type(request.type, where)
            for name in ("packageRef", "pluginDownloadURL"):
                if getattr(request, name):
                    raise Refused(f"{where}: the field {name!r} is not implemented by lab/engine")
            goal = Goal(
                type=request.type,
                name=request.name,
                custom=True,
                parent=request.parent,
                inputs=from_struct(request.properties),
                dependencies=sorted(set(request.dependencies)),
                provider=request.provider,
                version=request.version,
                additional_secret_outputs=list(request.additionalSecretOutputs),
            )
            new = self._deployment.read(goal, request.id)
            return resource_pb2.ReadResourceResponse(
                urn=new.urn, id="" if new.id == UNKNOWN else new.id, properties=to_struct(new.outputs)
            )

    def Invoke(self, request, context):
        with self._errors(context):
            if request.packageRef or request.pluginDownloadURL:
                raise Refused(
                    f"function {request.tok}: package references and download URLs are not implemented by lab/engine"
                )
            check_type(request.tok, f"function {request.tok}")
            try:
                answer = self._deployment.invoke(
                    request.tok, from_struct(request.args), request.provider, request.version, list(request.dependsOn)
                )
            except StepFailed as error:
                refused = f"invocation of {request.tok} failed: {error}"
            else:
                if answer is None:
                    return resource_pb2.ResourceInvokeResponse(unknown=True)
                return resource_pb2.ResourceInvokeResponse(
                    **{"return": getattr(answer, "return")}, failures=answer.failures
                )
        # outside, for it is no failure of the deployment: the program may handle it
        return context.abort(grpc.StatusCode.UNKNOWN, refused)

    def RegisterStackTransform(self, request, _context):
        self._deployment.callbacks.add_stack_transform(request)
        return EMPTY

    def RegisterResourceHook(self, request, context):
        with self._errors(context):
            self._deployment.callbacks.add_hook(request)
            return EMPTY

    def SignalAndWaitForShutdown(self, _request, _context):
        """The program's text is done; it stays for the delete hooks until the run is over."""
        d = self._deployment
        with d.condition:
            d.signalled = True
            d.condition.notify_all()
            d.condition.wait_for(lambda: d.released)
        return EMPTY

    def Call(self, _request, context):
        self._refuse(context, "method calls")

    def ExistsResource(self, _request, context):
        self._refuse(context, "existence checks")

    def RegisterStackInvokeTransform(self, _request, context):
        self._refuse(context, "invoke transforms")

    def RegisterErrorHook(self, _request, context):
        self._refuse(context, "error hooks")

    def RegisterPackage(self, _request, context):
        self._refuse(context, "parameterized packages")
