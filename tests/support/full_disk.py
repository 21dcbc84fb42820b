"""A disk with little room, for this process."""

import resource
from contextlib import contextmanager


@contextmanager
def room_for(size):
    """Let no file of this process grow beyond some bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
