"""Pulumi's own CLI, built from its Go modules, and a language host for Python beside it."""
