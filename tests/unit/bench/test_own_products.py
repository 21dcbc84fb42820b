import torch

from heedful.bench import own_products
from heedful.bench.own_products import products_alone


def test_every_product_is_timed_as_often_as_it_is_made(monkeypatch):
    timed = []

    def seconds(function, args, kwargs):
        del kwargs
        timed.append((function.name(), tuple(args[-1].shape)))
        return 1.0

    monkeypatch.setattr(own_products, "_seconds", seconds)
    weight = torch.randn(6, 5, requires_grad=True)

    def work():
        x = torch.randn(4, 5)
        (x @ weight.t()).sum().backward()  # one product forward, one backward
        (x @ weight.t()).sum().backward()
        torch.bmm(torch.randn(2, 3, 4), torch.randn(2, 4, 3)).relu()

    assert products_alone(work) == 5
    assert sorted(timed) == [("aten::bmm", (2, 4, 3)), ("aten::mm", (4, 5)), ("aten::mm", (5, 6))]


def test_products_take_the_time_of_the_operation():
    x, weight = torch.randn(200, 300), torch.randn(300, 400)
    few, many = (products_alone(lambda n=n: [x @ weight for _ in range(n)]) for n in (1, 1000))
    assert 0 < few < many
