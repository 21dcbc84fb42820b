import torch

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
