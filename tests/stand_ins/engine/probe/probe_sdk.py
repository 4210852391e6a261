"""What a generated SDK of the probe provider would hold."""

import pulumi

VERSION = "1.0.0"


def _options(opts):
    return pulumi.ResourceOptions.merge(pulumi.ResourceOptions(version=VERSION), opts)


class Thing(pulumi.CustomResource):
    serial: pulumi.Output[str]
    value: pulumi.Output

    def __init__(self, name, opts=None, **inputs):
        super().__init__("probe:index:Thing", name, {"serial": None, "value": None, **inputs}, _options(opts))


class Provider(pulumi.ProviderResource):
    def __init__(self, name, opts=None, **config):
        super().__init__("probe", name, config, _options(opts))


def lookup(name, token="probe:index:lookup"):
    return pulumi.runtime.invoke(token, {"name": name}, pulumi.InvokeOptions(version=VERSION)).value


Options = pulumi.ResourceOptions
