"""
Download of a registered corpus into a folder: locate its files, check them, extract the text.

::

    the folder itself ─ mirrors of the user ─ addresses of the catalog
        └ SHA-256 as known, or as recorded in SHA256SUMS, or recorded there now
            └ unpacked into text files whose sides are equally long
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from heedful.data.datasets.checksums import SUMS, Checksums, publish_file, sha256_of, writing
from heedful.data.datasets.download import SCHEMES, Unreachable, Watch, fetch, forget
from heedful.data.datasets.spec import CorpusText, Download, KnownCorpus
from heedful.data.datasets.unpack import unpack
from heedful.data.text_parts import format_training
from heedful.errors import DownloadError, RunStopped, TextError, UserError
from heedful.files import open_ordinary

_CHUNK = 1 << 20


def get_corpus(
    corpus: KnownCorpus,
    folder: Path,
    *,
    mirrors: Sequence[str] = (),
    say: Callable[[str], object],
    watch: Watch = lambda _name, _done, _total: None,
    wait: Callable[[float], object] = time.sleep,
) -> dict[str, int]:
    """
    Download a corpus as line-aligned text.

    `watch`: called with the file name, the bytes so far and the total bytes, if known. `wait`:
    called with the seconds to wait before a retry.

    If all texts exist and are unchanged, neither the network nor the archives are needed.

    Raises `DownloadError` if a file is not found at any location. Raises `TextError` if a file in
    the folder has the wrong size or digest, or an archive is damaged. Raises `StorageError` if the
    disk is full. Raises `UserError` if a mirror is neither a folder nor an address, or the folder
    is in use or holds another corpus. Raises `RunStopped` on Ctrl-C; the data downloaded so far is
    kept.
    """
    for mirror in mirrors:
        _check_mirror(mirror)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        with _alone(folder):
            sums = Checksums.read(folder)
            if sums.title not in ("", corpus.name):
                raise UserError(
                    f"{folder} must be a new folder or contain {corpus.name}, but it contains "
                    f"{sums.title}; name another folder with --out."
                )
            sums.title = corpus.name
            if all(_is_as_recorded(text, sums) for text in corpus.texts):
                say(f"the text is already in {folder} and matches its {SUMS}")
                return _aligned_lines(folder, corpus.texts)
            _Search(corpus, sums, mirrors, say, watch, wait).run()
            say("unpacking")
            unpack(folder, corpus.texts)
            lines = _aligned_lines(folder, corpus.texts)
            # Checksums are recorded only after unpacking, so that a file that is not an archive
            # gets none.
            sums.by_name |= {text.name: sha256_of(folder / text.name) for text in corpus.texts}
            sums.write()
            return lines
    except KeyboardInterrupt:
        raise RunStopped(
            f"stopped. The downloaded data is kept in {folder}; the same command "
            "continues the download."
        ) from None


def train_command(corpus: KnownCorpus, folder: Path) -> str:
    """Format the command that trains on a corpus."""
    is_one_text = any(text.stem == "train" for text in corpus.texts)
    train = "train" if is_one_text else "train.*"
    texts = (train, corpus.valid)
    return format_training(corpus.recipe, corpus.name, folder, corpus.languages, texts)


@dataclass
class _Search:
    """Download of all files of a corpus into its folder."""

    corpus: KnownCorpus
    sums: Checksums
    mirrors: Sequence[str]
    say: Callable[[str], object]
    watch: Watch
    wait: Callable[[float], object]
    silent: dict[str, str] = field(default_factory=dict)
    """Hosts that do not answer and are not tried again."""

    @property
    def _folder(self) -> Path:
        return self.sums.folder

    def run(self) -> None:
        """Locate each file; report all missing files together."""
        failures: dict[tuple[str, str], list[str]] = {}
        missing = []
        for download in self.corpus.downloads:
            path = self._folder / download.name
            if path.exists():
                self._accept(download, path)
            elif reasons := self._look_everywhere(download):
                missing.append(download.name)
                for reason in reasons:
                    failures.setdefault(reason, []).append(download.name)
        if missing:
            causes = "; ".join(
                f"{place} does not provide {', '.join(names)} ({why})"
                for (place, why), names in failures.items()
            )
            raise DownloadError(
                f"every file of {self.corpus.name} must be available, but some are not: {causes}. "
                f"Put {', '.join(missing)} into {self._folder} and run the command again, or "
                "name a mirror with --mirror; downloaded files are kept."
            )

    def _accept(self, download: Download, path: Path) -> None:
        """Check and accept a file that is already in the folder."""
        try:
            digest, state = self._check(download, path)
        except _Wrong as wrong:
            raise TextError(
                f"{path} {wrong}; it is damaged or is a different file: replace it or move it "
                "away, and run the command again."
            ) from wrong
        self.sums.by_name[download.name] = digest
        self.say(f"{download.name} is already in the folder; {state}")

    def _look_everywhere(self, download: Download) -> list[tuple[str, str]]:
        """Get a file from the first location that has it; else report why each location failed."""
        reasons = []
        mirrors = [_at(mirror, download.name) for mirror in self.mirrors]
        for place in (*mirrors, *download.addresses):
            # The protocol is included, because http may work where a certificate is bad.
            host = "" if isinstance(place, Path) else "://".join(urlsplit(place)[:2])
            reason = self.silent.get(host, "")
            if not reason:
                try:
                    self._take(download, place)
                    return []
                except DownloadError as error:
                    reason = "".join(c if c.isprintable() else "\ufffd" for c in str(error))
                    if isinstance(error, Unreachable):
                        self.silent[host] = reason
                    self.say(f"{download.name} cannot be fetched from {place}: {reason}")
            reasons.append((str(place).removesuffix(quote(download.name)), reason))
        return reasons

    def _take(self, download: Download, source: str | Path) -> None:
        """Copy or download a file, check it, and only then rename it."""
        path = self._folder / download.name
        self.say(f"{download.name} from {source}")
        resumed = False
        if isinstance(source, Path):
            arriving = path.with_name(f".{path.name}.copy")
            self._copy(source, arriving)
        else:
            arriving = _partial(path)
            resumed = arriving.exists()
            fetch(source, arriving, size=download.size, watch=self.watch, wait=self.wait)
        try:
            digest, state = self._check(download, arriving)
        except _Wrong as wrong:
            forget(arriving)
            if resumed:  # perhaps only the earlier part was wrong: try once from the beginning
                self._take(download, source)
                return
            raise DownloadError(f"it {wrong}") from wrong
        with writing(self._folder):
            publish_file(arriving, path)
        forget(_partial(path))
        self.sums.by_name[download.name] = digest
        self.say(f"{download.name} has {path.stat().st_size:,} bytes; {state}")

    def _copy(self, source: Path, copy: Path) -> None:
        """Copy a file from a mirror folder."""
        if not source.is_file():
            raise DownloadError("there is no such file")
        size = source.stat().st_size
        try:
            with writing(copy.parent), copy.open("wb") as file:
                for chunk in _chunks(source):
                    file.write(chunk)
                    self.watch(source.name, file.tell(), size)
        except BaseException:
            copy.unlink(missing_ok=True)
            raise

    def _check(self, download: Download, path: Path) -> tuple[str, str]:
        """Compute the SHA-256 of a file and compare it with the expected one."""
        size = path.stat().st_size
        if download.size not in (None, size):
            raise _Wrong(f"must have {download.size:,} bytes, but has {size:,}")
        expected, whence = self._expected_digest(download)
        digest = sha256_of(path)
        if not expected:
            return digest, (
                "its SHA-256 was recorded but not verified, because no published checksum is known"
            )
        if digest != expected:
            raise _Wrong(f"must have the SHA-256 {expected} ({whence}), but has {digest}")
        return digest, f"its SHA-256 is {whence}"

    def _expected_digest(self, download: Download) -> tuple[str, str]:
        """Find the expected SHA-256 of a file, and the source of this SHA-256."""
        if download.sha256:
            return download.sha256, "the expected value"
        lists = [self.sums]
        for mirror in self.mirrors:
            if not _is_address(mirror):
                lists.append(Checksums.read(Path(mirror)))
        for sums in lists:
            if sums.title in ("", self.corpus.name) and download.name in sums.by_name:
                return sums.by_name[download.name], f"the value recorded in {sums.folder / SUMS}"
        return "", ""


class _Wrong(Exception):
    """A file with the wrong content."""


def _is_address(mirror: str) -> bool:
    """Whether a mirror is an address, not a folder."""
    return "://" in mirror


def _check_mirror(mirror: str) -> None:
    """Refuse a mirror that is neither an existing folder nor a web address."""
    is_usable = Path(mirror).is_dir()
    if _is_address(mirror):
        parts = urlsplit(mirror)
        is_usable = parts.scheme in SCHEMES and bool(parts.netloc)
    if not is_usable:
        raise UserError(
            "--mirror must be a folder or an address that begins with http:// or https://, but "
            f"{mirror} is neither."
        )


def _partial(path: Path) -> Path:
    """Return the name of a partial download."""
    return path.with_name(f"{path.name}.partial")


def _at(mirror: str, name: str) -> str | Path:
    """Return the location of a file on a mirror."""
    return f"{mirror.rstrip('/')}/{quote(name)}" if _is_address(mirror) else Path(mirror, name)


def _chunks(source: Path) -> Iterator[bytes]:
    """Read a file in chunks; report errors of the mirror as such, not as disk errors."""
    try:
        with open_ordinary(source) as file:
            while chunk := file.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise DownloadError(f"it cannot be read: {error.strerror or error}") from error


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock the folder against a second process."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems do not support locks
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UserError(
                    f"{folder} must not be in use, but another process is downloading a corpus "
                    "into it; wait for that process or name another folder with --out."
                ) from error
        yield
    finally:
        os.close(descriptor)


def _is_as_recorded(text: CorpusText, sums: Checksums) -> bool:
    """Whether a text exists with the recorded content."""
    path = sums.folder / text.name
    return (
        text.name in sums.by_name and path.is_file() and sha256_of(path) == sums.by_name[text.name]
    )


def _aligned_lines(folder: Path, texts: Sequence[CorpusText]) -> dict[str, int]:
    """Count the lines of each text; texts with the same stem must have the same number."""
    lines = {text.name: _count_lines(folder / text.name) for text in texts}
    first: dict[str, CorpusText] = {}
    for text in texts:
        sibling = first.setdefault(text.stem, text)
        if lines[text.name] != lines[sibling.name]:
            raise TextError(
                f"{folder / sibling.name} and {folder / text.name} must have the same number of "
                f"lines, but have {lines[sibling.name]:,} and {lines[text.name]:,}; the downloads "
                "differ from the catalog."
            )
    return lines


def _count_lines(path: Path) -> int:
    """Count lines, including a last line without a line feed, with little memory."""
    count, last = 0, b"\n"
    with open_ordinary(path) as file:
        while chunk := file.read(_CHUNK):
            count, last = count + chunk.count(b"\n"), chunk
    return count + (not last.endswith(b"\n"))
