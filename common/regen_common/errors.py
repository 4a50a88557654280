"""Everything Regen raises on purpose. One subclass per thing a caller can do something about.

The message is one line and names the cure; the cause is kept in ``__cause__``. Foreign errors are
mapped once, in the module that wraps their library.
"""

EXIT_INTERRUPTED = 130
"""Of a command that was stopped by Ctrl-C: no error, and the same command goes on."""


class RegenError(Exception):
    """Base of all. ``exit_code`` is what a command that ends with it returns."""

    exit_code = 1


class UsageError(RegenError):
    """Wrong flags, wrong configuration, or an environment in which the command can't work."""

    exit_code = 2


class RunNotFoundError(UsageError):
    """Redis knows no run of this name."""


class RunMismatchError(UsageError):
    """The run exists, and what was asked contradicts it (another input, another destination)."""


class StoreError(UsageError):
    """The prompt store is missing, unreadable, or another run's."""


class RedisError(RegenError):
    """Redis answered with an error that waiting does not cure."""


class RedisUnavailableError(RedisError):
    """Redis can't be reached, or did not answer in time. Trying again later is right."""


class RedisFullError(RedisError):
    """Redis is at its ``maxmemory``. Draining goes on; new work has to wait."""


class RedisReadOnlyError(RedisError):
    """Redis takes no writes now: a replica, or a disk that refuses. Waiting is right."""


class WrongEpochError(RegenError):
    """The run's Redis side was rebuilt, or is gone, since this process began. It must stop."""


class InputError(RegenError):
    """The input can't be read whole (missing, cut short, unreadable)."""


class DestinationError(RegenError):
    """The destination did not take or give an object, and trying again may help."""


class DestinationRefusedError(UsageError):
    """The destination can't work as configured: no such bucket, no permission, wrong region."""


class ObjectConflictError(RegenError):
    """An object of this name is there with other content. Nothing was overwritten."""


class EngineRefusedError(UsageError):
    """The engine can't serve this run: wrong key, wrong model, failed preflight."""
