import copy

from torch import nn

from heedful.model.parts import Parts


def test_it_is_torch_s_list():
    parts: Parts[nn.Linear] = Parts(nn.Linear(2, width) for width in (3, 4))
    assert [part.out_features for part in parts] == [3, 4]
    assert parts.first is parts[0]
    assert [*parts.state_dict()] == ["0.weight", "0.bias", "1.weight", "1.bias"]
    assert [part.out_features for part in copy.deepcopy(parts)] == [3, 4]
