"""lab/engine: a small deployment engine that speaks Pulumi's public gRPC protocols. A stand-in for the pulumi CLI."""

BANNER = "lab/engine, a stand-in for the pulumi CLI"
VERSION = "v0.1.0+lab-engine"
