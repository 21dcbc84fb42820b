from contextlib import contextmanager
from types import SimpleNamespace

import torch

from heedful.kernels import graphs
from heedful.kernels.graphs import Graph


def test_on_a_processor_a_graph_is_its_work():
    total, added = torch.zeros(2), torch.ones(2)
    graph = Graph(lambda: total.add_(added), torch.device("cpu"))
    assert total.tolist() == [0.0, 0.0]  # nothing runs before the first replay
    graph.replay()
    added.fill_(3.0)
    graph.replay()
    assert total.tolist() == [4.0, 4.0]
    assert graph.pool is None


def test_a_graph_is_recorded_on_its_own_device_and_on_one_stream_of_it(monkeypatch):
    """By default torch records on a stream of the device of the first graph."""
    present, seen = [0], []

    @contextmanager
    def on(device):
        before, present[0] = present[0], torch.device(device).index
        yield
        present[0] = before

    @contextmanager
    def recording(graph, *, stream, pool, capture_error_mode):
        seen.append((stream, capture_error_mode))
        with on(stream.device):
            yield

    def stream(device):
        return SimpleNamespace(device=torch.device(device), wait_stream=lambda other: None)

    names = {"device": on, "graph": recording, "Stream": stream, "current_stream": stream}
    names |= {"stream": lambda stream: on(stream.device), "CUDAGraph": lambda: present[0]}
    for name, fake in names.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    graphs._recording_stream.cache_clear()
    for index in (0, 1, 1):
        work = []
        graph = Graph(lambda work=work: work.append(present[0]), torch.device("cuda", index))
        assert {*work} == {graph._graph} == {index}
    graphs._recording_stream.cache_clear()
    assert [stream.device.index for stream, _ in seen] == [0, 1, 1]
    assert seen[1] == seen[2]  # graphs of two streams would share no memory
