from tests.support.systems import corpus, make

__all__ = ["corpus", "make"]
