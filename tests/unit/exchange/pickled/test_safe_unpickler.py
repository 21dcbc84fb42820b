"""Old checkpoints are pickles: honest ones are read, and of hostile ones nothing is executed."""

import argparse
import io
import os
import pickle
import struct
import sys
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.errors import ExchangeError
from heedful.exchange.pickled import safe_unpickler
from heedful.exchange.pickled.placeholders import OpaqueObject
from heedful.exchange.pickled.safe_unpickler import read_inert
from heedful.exchange.pickled.settings import settings_of
from heedful.exchange.pickled.torch_file import read_torch_file
from heedful.families.foreign import number_in

RUNS_SOMETHING = {
    *("compile", "exec", "import", "marshal.loads", "pickle.find_class"),
    *("os.exec", "os.fork", "os.posix_spawn", "os.remove", "os.system", "os.mkdir"),
    *("shutil.rmtree", "socket.connect", "subprocess.Popen", "urllib.Request", "ctypes.dlopen"),
}
HEARD, LISTENING = [], []


def _listen(event, arguments):
    writes = event == "open" and "w" in str(arguments[1])
    if LISTENING and (event in RUNS_SOMETHING or writes):
        # the checks of types that tests run with compile their own code
        caller = sys._getframe(1).f_code.co_filename
        if "jaxtyping" not in caller and "beartype" not in caller:
            HEARD.append((event, caller, arguments))


sys.addaudithook(_listen)


@pytest.fixture
def silence():
    """Fail if the interpreter executes, imports or writes anything while a file is read."""
    for zipped in (True, False):  # what reading itself imports at the first time
        buffer = io.BytesIO()
        torch.save({"t": torch.ones(1)}, buffer, _use_new_zipfile_serialization=zipped)
    HEARD.clear()

    def check(read, *arguments):
        LISTENING.append(True)
        try:
            return read(*arguments)
        finally:
            LISTENING.clear()
            assert HEARD == []

    return check


class HostilePickle:
    """Pickles as the call of a function."""

    def __init__(self, called, *arguments):
        self.called, self.arguments = called, arguments

    def __reduce__(self):
        return self.called, self.arguments


def saved(value, path, zipped=True, protocol=2):
    torch.save(value, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    return path


def refusal(read, *arguments):
    with pytest.raises(ExchangeError) as caught:
        read(*arguments)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1000
    return message


def raw(content):
    """Read a bare pickle."""
    return read_inert(io.BytesIO(content), {}, str)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("zipped", [True, False])
def test_an_honest_checkpoint_is_read_whole(zipped, protocol, tmp_path, silence):
    model = torch.nn.Linear(3, 4)
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    options = argparse.Namespace(arch="transformer", layers=6, rate=[0.5, None], on=True)
    whole = torch.arange(20.0).reshape(4, 5)
    value = {
        "args": options,
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "views": OrderedDict(turned=whole.t(), part=whole[1:3, 2:], number=torch.tensor(3.5)),
        "narrow": {"half": whole.half(), "brain": whole.bfloat16(), "long": whole.long()},
        "parameter": torch.nn.Parameter(whole),
        "counts": (Counter("aab"), defaultdict(int, a=1), {1, 2}, frozenset("x"), b"\xff", 1 << 70),
        "best": np.float64(27.5),
    }
    read = silence(read_torch_file, saved(value, tmp_path / "a.pt", zipped, protocol))
    assert settings_of(read["args"]) == vars(options)
    for name, tensor in model.state_dict().items():
        assert np.array_equal(read["model"][name].numpy(), tensor.numpy())
    for name, tensor in value["views"].items():
        assert np.array_equal(read["views"][name].numpy(), tensor.numpy())
    for tensor in read["narrow"].values():
        assert np.array_equal(tensor.numpy(), whole.numpy())
    assert read["narrow"]["half"].numpy().dtype == np.float32
    assert np.array_equal(read["parameter"].numpy(), whole.numpy())
    assert read["counts"] == ({"a": 2, "b": 1}, {"a": 1}, {1, 2}, {"x"}, b"\xff", 1 << 70)
    assert read["best"] == 27.5
    assert read["optimizer"]["param_groups"][0]["betas"] == (0.9, 0.999)


def test_an_archive_is_opened_once_and_closed_with_its_last_tensor(tmp_path):
    def is_open():
        opened = (Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))
        return any(path.exists() and path.samefile(tmp_path / "b.pt") for path in opened)

    path = saved({name: torch.arange(3.0) for name in "ab"}, tmp_path / "a.pt")
    os.link(path, tmp_path / "b.pt")
    tensors = read_torch_file(path)
    path.unlink()
    assert is_open()
    assert all(np.array_equal(tensor.numpy(), [0, 1, 2]) for tensor in tensors.values())
    del tensors
    assert not is_open()


ATTACKS = {
    "posix.system": (os.system, "touch {}"),
    "builtins.eval": (eval, "__import__('os').system('touch {}')"),
    "builtins.exec": (exec, "open('{}', 'w')"),
    "builtins.getattr": (getattr, "a", "b"),
    "io.open": (open, "{}", "w"),
    "builtins.__import__": (__import__, "antigravity"),
    "torch.serialization.load": (torch.load, "{}"),
    "torch.hub.load": (torch.hub.load, "{}", "x"),
    "subprocess.Popen": (__import__("subprocess").Popen, ["touch", "{}"]),
    "importlib.import_module": (__import__("importlib").import_module, "this"),
    "pickle._loads": (pickle._loads, b"x"),
    "operator.attrgetter": (__import__("operator").attrgetter("x.y").__class__, "x"),
}


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", ATTACKS)
def test_a_call_is_refused_by_its_name_and_nothing_is_executed(name, zipped, tmp_path, silence):
    called, *arguments = ATTACKS[name]
    mark = tmp_path / "mark"
    arguments = [a.format(mark) if isinstance(a, str) else a for a in arguments]
    value = {"model": {"a": torch.ones(2)}, "args": HostilePickle(called, *arguments)}
    path = saved(value, tmp_path / "evil.pt", zipped)
    message = refusal(silence, read_torch_file, path)
    assert f".{name.rpartition('.')[2]};" in message  # protocol 2 has old names for some modules
    assert "none of it was executed" in message
    assert not mark.exists()


def test_all_names_are_refused_together(tmp_path):
    value = [HostilePickle(os.system, "true"), HostilePickle(eval, "1")]
    message = refusal(read_torch_file, saved(value, tmp_path / "evil.pt"))
    assert "posix.system" in message
    assert "eval" in message


@pytest.mark.parametrize(
    "content",
    [
        b"(S'true'\nios\nsystem\n.",  # INST
        b"(cos\nsystem\nS'true'\no.",  # OBJ
        b"\x80\x02(cos\nsystem\nX\x04\x00\x00\x00trueo.",
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",  # STACK_GLOBAL
        b"\x80\x02cfunctools\npartial\ncos\nsystem\n\x85R.",
        b"\x80\x02\x82\x01.",  # EXT1
        b"\x80\x02Pname\n.",  # PERSID
        b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85\x81.",  # NEWOBJ
        b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85}\x92.",  # NEWOBJ_EX
    ],
)
def test_every_way_to_name_a_function_is_refused(content, silence):
    refusal(silence, raw, content)


def test_objects_of_toolkits_are_inert_and_their_modules_are_not_imported(
    tmp_path, monkeypatch, silence
):
    mark = tmp_path / "mark"
    (tmp_path / "fairseq.py").write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.syspath_prepend(tmp_path)
    state = b"}X\x0c\x00\x00\x00__setstate__X\x01\x00\x00\x00asb"
    read = silence(raw, b"\x80\x02cfairseq\nMeter\n)\x81" + state + b".")
    assert isinstance(read, OpaqueObject)
    assert (read.kind, read.state) == ("fairseq.Meter", {"__setstate__": "a"})
    assert not mark.exists()
    assert "fairseq" not in sys.modules


def test_a_class_cannot_be_given_a_state(silence):
    content = b"\x80\x02cargparse\nNamespace\n}X\x01\x00\x00\x00aX\x01\x00\x00\x00bsb."
    assert "with a state" in refusal(silence, raw, content)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02.",
        b"\x80\x02]",
        b"hello world",
        b"\x80\x02h\x05.",  # from an empty memory
        b"\x80\x02a.",
        b"\x80\x02t.",
        b"\x80\x02K\x01K\x02\x86]a.",
        b"\x80\x04\x8e" + struct.pack("<Q", 1 << 60) + b"x.",  # bytes that are not there
        b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62) + b"x.",
        b"\x80\x02\x8b" + struct.pack("<i", 1 << 20) + b"\x7f" * (1 << 20) + b".",  # a number
        b"\x80\x02}]K\x01s.",  # a list as key
        b"\x80\x02c" + b"a" * 5000,
    ],
)
def test_a_damaged_pickle_is_one_paragraph(content):
    refusal(raw, content)


def test_bombs_of_shared_values_stay_small():
    shared = b"\x80\x02]q\x00" + b"".join(
        b"](" + b"h" + bytes([n]) + (b"h" + bytes([n])) * 9 + b"eq" + bytes([n + 1])
        for n in range(40)
    )
    read = raw(shared + b".")  # ten to the power of forty values, if it were written out
    assert len(read) == 10
    assert "more" in refusal(settings_of, OpaqueObject("argparse.Namespace", (), {"a": read}))
    deep = raw(b"\x80\x02" + b"]" * 30_000 + b"a" * 29_999 + b".")
    assert settings_of({"a": deep})["a"] is not None


@pytest.mark.parametrize("instruction", [b"(", b"]", b"N"])
def test_every_instruction_counts(instruction, monkeypatch):
    assert safe_unpickler._MOST_INSTRUCTIONS == 8_388_608
    monkeypatch.setattr(safe_unpickler, "_MOST_INSTRUCTIONS", 1000)
    assert "more than 1,000 instructions" in refusal(raw, b"\x80\x02" + instruction * 1000 + b".")
    assert raw(b"\x80\x02" + b"N0" * 498 + b"N.") is None


def test_values_that_are_copied_or_hashed_again_and_again_are_refused():
    text = b"X" + struct.pack("<I", 1 << 20) + b"a" * (1 << 20) + b"q\x00"
    call = b"c_codecs\nencode\nh\x00X\x06\x00\x00\x00latin1\x86R0"
    assert "over and over" in refusal(raw, b"\x80\x02" + text + call * 70 + b".")
    nested = b"\x80\x02)q\x00" + b"0h\x00h\x00\x86q\x00" * 60
    assert "key" in refusal(raw, nested + b"0}h\x00K\x01s.")
    assert "key" in refusal(raw, b"\x80\x02}(" + b"K\x01" * 20 + b"tK\x01s.")


def rewritten(path, change, **options):
    """Write an archive again, changed record by record."""
    with zipfile.ZipFile(path) as archive:
        records = [(one.filename, archive.read(one)) for one in archive.infolist()]
    with zipfile.ZipFile(path, "w", **options) as archive:
        for name, content in change(records):
            archive.writestr(name, content)
    return path


@pytest.fixture
def honest(tmp_path):
    return saved({"model": {"a": torch.arange(6.0)}}, tmp_path / "a.pt")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_tricks_with_the_archive_are_refused(honest):
    content = honest.read_bytes()

    def refused(change=lambda records: records, **options):
        honest.write_bytes(content)
        message = refusal(read_torch_file, rewritten(honest, change, **options))
        assert str(honest) in message
        return message

    assert "compressed" in refused(compression=zipfile.ZIP_DEFLATED)
    assert "twice" in refused(lambda records: [*records, records[0]])
    assert "0 files named data.pkl" in refused(lambda records: records[1:])
    assert "2 files" in refused(lambda records: [*records, ("b/data.pkl", b"N.")])
    assert "not in the archive" in refused(
        lambda records: [(n, c[:-1] if n.endswith("data/0") else c) for n, c in records]
    )
    assert "not in the archive" in refused(
        lambda records: [(n.replace("data/0", "data/../data/0"), c) for n, c in records]
    )
    assert "little-endian" in refused(
        lambda records: [(n, b"big" if n.endswith("byteorder") else c) for n, c in records]
    )
    for end in (3, 40, len(content) // 2, len(content) - 3):
        honest.write_bytes(content[:end])
        refusal(read_torch_file, honest)


def tensor_pickle(shape, strides, offset=0, numbers=6):
    """A checkpoint whose only tensor is described by these numbers."""

    class BlockPickler(pickle.Pickler):
        def persistent_id(self, part):
            is_block = isinstance(part, Block)
            return ("storage", torch.FloatStorage, "0", "cpu", numbers) if is_block else None

    class PickledPart:
        def __reduce__(self):
            return torch._utils._rebuild_tensor_v2, (
                Block(),
                offset,
                shape,
                strides,
                False,
                OrderedDict(),
            )

    class Block:
        pass

    buffer = io.BytesIO()
    BlockPickler(buffer, 2).dump(PickledPart())
    return buffer.getvalue()


@pytest.mark.parametrize(
    "described",
    [
        ((1 << 40,), (0,)),
        ((7,), (1,)),
        ((6,), (2,)),
        ((2,), (1,), 5),
        ((2,), (1,), -1),
        ((-1,), (1,)),
        ((2,), (-1,), 4),
        ((2, 3), (1,)),
        ((1 << 62, 1 << 62), (0, 0)),
        ((1,) * 9, (1,) * 9),
    ],
)
def test_a_tensor_outside_of_its_block_is_refused(described, tmp_path):
    path = saved(torch.arange(6.0), tmp_path / "a.pt")

    def change(records):
        return [(n, tensor_pickle(*described) if n.endswith("data.pkl") else c) for n, c in records]

    tensor = read_torch_file(rewritten(path, change))
    assert "does not fit" in refusal(tensor.numpy)


def test_blocks_larger_than_the_file_are_refused(tmp_path):
    path = saved(torch.arange(6.0), tmp_path / "a.pt")

    def change(records):
        huge = tensor_pickle((1 << 40,), (1,), 0, 1 << 40)
        return [(n, huge if n.endswith("data.pkl") else c) for n, c in records]

    assert "not in the archive" in refusal(read_torch_file, rewritten(path, change))
    path = saved(torch.arange(6.0), tmp_path / "b.pt", zipped=False)
    content = path.read_bytes()
    for changed in (content[:-1], content.replace(struct.pack("<q", 6), struct.pack("<q", -6))):
        path.write_bytes(changed)
        assert "incomplete" in refusal(read_torch_file, path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"text\n", b"\x80\x02K\x01."])
def test_what_is_no_checkpoint_is_one_paragraph(content, tmp_path):
    path = tmp_path / "a.pt"
    path.write_bytes(content)
    assert str(path) in refusal(read_torch_file, path)
    assert "b.pt" in refusal(read_torch_file, tmp_path / "b.pt")


def test_settings_are_plain_and_numbers_are_checked():
    node = OpaqueObject("omegaconf.nodes.AnyNode", (), {"_val": 512, "_parent": None})
    config = OpaqueObject("omegaconf.dictconfig.DictConfig", (), {"_content": {"d": node}})
    config.state["_parent"] = config
    level = OpaqueObject("fairseq.Choice", ("relu",))
    settings = settings_of(
        {"model": config, "level": level, "odd": OpaqueObject("x"), 3: 4, "__m": 1}
    )
    assert settings == {"model": {"d": 512}, "level": "relu", "odd": None}
    assert number_in({"a": 2}, "a", 1) == 2
    assert number_in({"a": None}, "a", 1) == 1
    for wrong in ("2", True, 1e9, float("nan"), [1]):
        assert "`a`" in refusal(number_in, {"a": wrong}, "a", 1)
    assert "names and values" in refusal(settings_of, [1])
