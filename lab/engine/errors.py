"""The engine's own errors. Each message is one sentence for the person at the terminal."""

EXIT_FAILED = 1
EXIT_NO_STACK = 6
EXIT_CHANGES = 7


class EngineError(Exception):
    """Ends the command with this message and exit code."""

    def __init__(self, message: str, code: int = EXIT_FAILED):
        super().__init__(message)
        self.code = code


class Refused(EngineError):
    """The program or the project asks for something that this engine does not implement."""


class StepFailed(EngineError):
    """One resource's operation failed; the run ends, what is finished stays in the state."""

    def __init__(self, message: str, urn: str = ""):
        super().__init__(message)
        self.urn = urn


class Terminated(Exception):
    """The run is ending (a failure or an interrupt): no new step may start."""
