"""Translated files are kept for a while, under names that cannot be guessed."""

import asyncio

from heedful.serve.file_store import FileStore


def test_a_file_is_found_under_its_name_alone():
    async def work():
        files = FileStore()
        names = {files.keep(b"text", ".txt") for _ in range(100)}
        assert len(names) == 100
        assert all(len(name) == 36 and name.endswith(".txt") for name in names)
        assert files.find(names.pop()) == b"text"
        for other in ("", "x.txt", "../x", names.pop().upper(), names.pop()[:-1]):
            assert files.find(other) is None

    asyncio.run(work())


def test_a_file_is_forgotten_after_its_time():
    async def work():
        files = FileStore(seconds=0.0)
        name = files.keep(b"text", ".txt")
        while files.find(name) is not None:
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(work(), 240))


def test_the_oldest_make_room_for_the_newest():
    async def work():
        files = FileStore(most_bytes=10)
        names = [files.keep(b"four", ".txt") for _ in range(5)]
        assert [files.find(name) for name in names] == [None, None, None, b"four", b"four"]
        assert files.find(files.keep(b"more than ten bytes", ".txt")) is None
        assert files.find(files.keep(b"four", ".txt")) == b"four"

    asyncio.run(work())
