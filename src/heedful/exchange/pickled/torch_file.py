"""Files of `torch.save`: a zip archive, or, before torch 1.6, pickles and blocks of numbers."""

import io
import mmap
import struct
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from weakref import finalize

from heedful.errors import ExchangeError
from heedful.exchange.pickled.lazy_tensors import Storage, storage_kind, tensor_makers
from heedful.exchange.pickled.placeholders import GlobalName
from heedful.exchange.pickled.safe_unpickler import read_inert
from heedful.files import open_ordinary

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
# Maximum size of the part without tensors: words, settings and the names of tensors.
_LONGEST_PICKLE = 1 << 28


def read_torch_file(path: Path) -> Any:
    """
    Read a checkpoint of torch without torch; nothing in it is executed.

    Raises `ExchangeError` if the file is of another kind, is damaged, or holds anything but data.
    """
    with _as_paragraph(path):
        with open_ordinary(path) as file:
            start = file.read(4)
        return _read_zip(path) if start == b"PK\x03\x04" else _read_legacy(path)


@contextmanager
def _as_paragraph(path: Path) -> Iterator[None]:
    """Convert exceptions caused by a damaged file to an error of one paragraph."""
    try:
        yield
    except (OSError, zipfile.BadZipFile, RuntimeError, ValueError, EOFError, struct.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise ExchangeError(
            f"{path} must be a checkpoint that torch saved, but it cannot be read: "
            f"“{' '.join(str(reason).split())[:200]}”; check the path, or copy it again."
        ) from error
    except ExchangeError as error:
        raise ExchangeError(f"{path}: {error}") from error


def _read_zip(path: Path) -> Any:
    """Read the container of torch 1.6 and later."""
    # Opening an archive reads its whole list of files, so all tensors share one open archive.
    archive = _open_archive(path)
    records = _records(archive)
    pickles = [name for name in records if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise _no_checkpoint(f"the archive has {len(pickles)} files named data.pkl")
    folder = pickles[0].removesuffix("data.pkl")
    _check_order(archive, records, folder)
    if records[pickles[0]].file_size > _LONGEST_PICKLE:
        raise _no_checkpoint("the part without tensors is larger than 256 MiB")
    content = archive.read(pickles[0])

    def read(key: str) -> bytes:
        with _as_paragraph(path):
            return archive.read(f"{folder}data/{key}")

    def persistent(identifier: Any) -> Storage:
        kind, key, numbers = _check_identifier(identifier)
        record = records.get(f"{folder}data/{key}")
        storage = Storage(key, kind, numbers, read)
        if record is None or numbers * storage.width > record.file_size:
            raise _no_checkpoint(f"storage {key!r:.40} of {numbers} elements is not in the archive")
        return storage

    return read_inert(io.BytesIO(content), tensor_makers(), persistent)


def _open_archive(path: Path) -> zipfile.ZipFile:
    """Open an archive whose file is closed when nothing refers to the archive any more."""
    with ExitStack() as opened:
        archive = zipfile.ZipFile(file := opened.enter_context(open_ordinary(path)))
        opened.pop_all()
    finalize(archive, file.close)
    return archive


def _records(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """List the files of an archive; refuse compressed, encrypted and duplicate files."""
    records: dict[str, zipfile.ZipInfo] = {}
    for record in archive.infolist():
        plain = record.compress_type == zipfile.ZIP_STORED and not record.flag_bits & 1
        if not plain or record.file_size != record.compress_size or record.filename in records:
            raise _no_checkpoint(
                f"{ascii(record.filename)[:60]} is compressed, encrypted or listed twice, which "
                "torch never writes"
            )
        records[record.filename] = record
    return records


def _check_order(
    archive: zipfile.ZipFile, records: dict[str, zipfile.ZipInfo], folder: str
) -> None:
    """Refuse numbers that are not little-endian."""
    record = records.get(f"{folder}byteorder")
    if record is not None and (record.file_size > 8 or archive.read(record) != b"little"):
        raise _no_checkpoint("its numbers are not little-endian")


def _read_legacy(path: Path) -> Any:
    """Read the container from before torch 1.6: four pickles, then a list of keys, then blocks."""
    if path.stat().st_size == 0:
        raise _no_checkpoint("it is empty")
    with (
        open_ordinary(path) as file,
        _Bounded(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
    ):
        if _plain(content) != _MAGIC or _plain(content) != _PROTOCOL:
            raise _no_checkpoint("it does not begin like a torch checkpoint")
        system = _plain(content)
        if not isinstance(system, dict) or system.get("little_endian") is not True:
            raise _no_checkpoint("its numbers are not little-endian")
        storages: dict[str, Storage] = {}
        blocks: dict[str, tuple[int, int]] = {}

        def read(key: str) -> bytes:
            first, size = blocks[key]
            with _as_paragraph(path), open_ordinary(path) as file:
                file.seek(first)
                return file.read(size)

        saved = read_inert(content, tensor_makers(), _persistent_legacy(storages, read))
        keys = _plain(content)
        first, end = content.tell(), len(content)
        for key in keys if isinstance(keys, list) else []:
            storage = storages.get(key) if isinstance(key, str) else None
            if storage is None or first + 8 > end:
                raise _no_checkpoint("its list of storages does not match its tensors")
            (numbers,) = struct.unpack("<q", content[first : first + 8])
            size = storage.numbers * storage.width
            if numbers != storage.numbers or first + 8 + size > end:
                raise _no_checkpoint(
                    f"storage {key!r:.40} of {storage.numbers} elements is incomplete"
                )
            blocks[key] = (first + 8, size)
            first += 8 + size
        if len(blocks) != len(storages):
            raise _no_checkpoint("its list of storages does not match its tensors")
    return saved


def _persistent_legacy(
    storages: dict[str, Storage], read_block: Callable[[str], bytes]
) -> Callable[[Any], Storage]:
    """Record the storages that a pickle names, to find their blocks afterwards."""

    def persistent(identifier: Any) -> Storage:
        kind, key, numbers = _check_identifier(identifier)
        view = identifier[5] if len(identifier) > 5 else None
        if view is not None:
            raise _no_checkpoint("it has views of storages, which torch wrote before version 0.4")
        storage = storages.setdefault(key, Storage(key, kind, numbers, read_block))
        if (storage.kind, storage.numbers) != (kind, numbers):
            raise _no_checkpoint(f"storage {key!r:.40} is described in two ways")
        return storage

    return persistent


def _check_identifier(identifier: Any) -> tuple[str, str, int]:
    """Check the persistent id of a storage: the word “storage”, type, key, device and length."""
    is_storage = (
        isinstance(identifier, tuple)
        and len(identifier) in (5, 6)
        and identifier[0] == "storage"
        and isinstance(identifier[1], GlobalName)
        and isinstance(identifier[2], str)
        and type(identifier[4]) is int
        and identifier[4] >= 0
    )
    if not is_storage:
        raise _no_checkpoint("it refers to outside data that is not a storage of numbers")
    return storage_kind(identifier[1]), identifier[2], identifier[4]


class _Bounded(mmap.mmap):
    """A mapped file as a stream for `pickletools`, with a limit for each line."""

    def readline(self) -> bytes:
        """Read a line of limited length."""
        start = self.tell()
        end = self.find(b"\n", start, start + 4096)
        return self.read(end + 1 - start if end >= 0 else 4096)


def _plain(file: Any) -> Any:
    """Read a pickle without globals."""
    return read_inert(file, {}, _no_storage)


def _no_storage(identifier: Any) -> Any:
    del identifier
    raise _no_checkpoint("it does not begin like a torch checkpoint")


def _no_checkpoint(reason: str) -> ExchangeError:
    """Build the error for a file that torch did not save."""
    return ExchangeError(
        f"It must be a checkpoint saved by torch, but {reason}; copy it again, or ask its author."
    )
