"""What the tests of commands share with those of the parent."""

from tests.supervisor.conftest import short_folder

__all__ = ["short_folder"]
