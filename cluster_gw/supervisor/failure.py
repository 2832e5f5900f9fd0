"""How the parent ends when it cannot do its work."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller."""

    OK = 0
    FAILED = 1
    BAD_CONFIGURATION = 2
    DEPENDENCY_UNREACHABLE = 3


class StartError(Exception):
    """The group cannot start or go on; the message tells an operator what to do.

    Args:
        message: one line without a secret.
        code: how the process ends.
    """

    def __init__(self, message: str, code: ExitCode = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code
