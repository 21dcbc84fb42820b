"""Folders of Joey NMT's recurrent models, and its forward pass in torch's own modules."""

import math

import torch
from torch import nn

from tests.support.old_joey import SOURCE, TARGET, save


def settings(encoder=None, decoder=None, scale=(False, False), tied=(False, False), **testing):
    """The settings of ``config.yaml``; JSON is YAML."""
    sides = []
    for scaled, changes in zip(scale, (encoder, decoder), strict=True):
        embeddings = {"embedding_dim": 12, "scale": scaled}
        shape = {"type": "recurrent", "rnn_type": "gru", "num_layers": 1, "hidden_size": 10}
        sides.append({**shape, "embeddings": embeddings, **(changes or {})})
    return {
        "name": "old",
        "joeynmt_version": "2.3.0",
        "data": {"src": {"lang": "en", "level": "word"}, "trg": {"lang": "fr", "level": "word"}},
        "testing": {"beam_size": 3, "beam_alpha": 0.7, "max_output_length": 9, **testing},
        "model": {
            "tied_embeddings": tied[0],
            "tied_softmax": tied[1],
            "encoder": sides[0],
            "decoder": sides[1],
        },
    }


def write(folder, given, words=(SOURCE, TARGET), spread=0.6):
    """Write the files of a training; returns the model."""
    model = RecurrentJoey(given["model"], [len(pieces) for pieces in words])
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * spread)
    save(folder, given, words, {name: t.numpy() for name, t in model.state_dict().items()})
    return model.double().eval()


class RecurrentJoey(nn.Module):
    """Its modules and its forward pass, after encoders.py and decoders.py of 2.3.0."""

    def __init__(self, given, rows):
        super().__init__()
        one, other = given["encoder"], given["decoder"]
        self.given, width, hidden = given, one["hidden_size"], other["hidden_size"]
        first, second = (side["embeddings"]["embedding_dim"] for side in (one, other))
        kind = {"gru": nn.GRU, "lstm": nn.LSTM}
        modules = {
            "src_embed.lut": nn.Embedding(rows[0], first),
            "trg_embed.lut": nn.Embedding(rows[1], second),
            "encoder.rnn": kind[one["rnn_type"]](
                first, width, one["num_layers"], batch_first=True, bidirectional=True
            ),
            "decoder.rnn": kind[other["rnn_type"]](
                second + hidden * other.get("input_feeding", True),
                hidden,
                other["num_layers"],
                batch_first=True,
            ),
            "decoder.att_vector_layer": nn.Linear(hidden + 2 * width, hidden),
            "decoder.output_layer": nn.Linear(hidden, rows[1], bias=False),
            "decoder.attention.key_layer": nn.Linear(2 * width, hidden, bias=False),
        }
        if other.get("attention", "bahdanau") == "bahdanau":
            modules["decoder.attention.query_layer"] = nn.Linear(hidden, hidden, bias=False)
            modules["decoder.attention.energy_layer"] = nn.Linear(hidden, 1, bias=False)
        if other.get("init_hidden", "bridge") == "bridge":
            modules["decoder.bridge_layer"] = nn.Linear(2 * width, hidden)
        for name, module in modules.items():
            *path, last = name.split(".")
            place = self
            for part in path:
                if not hasattr(place, part):
                    place.add_module(part, nn.Module())
                place = getattr(place, part)
            place.add_module(last, module)
        if given["tied_embeddings"]:
            self.trg_embed.lut = self.src_embed.lut
        if given["tied_softmax"]:
            self.decoder.output_layer.weight = self.trg_embed.lut.weight

    def embed(self, side, table, ids):
        x = table.lut(torch.tensor([ids]))
        scaled = self.given[side]["embeddings"]["scale"]
        return x * math.sqrt(x.size(2)) if scaled else x

    def start(self, states):
        other, half = self.given["decoder"], states.size(2) // 2
        final = torch.cat([states[:, -1, :half], states[:, 0, half:]], dim=1)
        kind, hidden = other.get("init_hidden", "bridge"), other["hidden_size"]
        if kind == "bridge":
            first = torch.tanh(self.decoder.bridge_layer(final))
        elif kind == "last":
            first = final[:, :hidden]
        else:
            first = torch.zeros(1, hidden, dtype=states.dtype)
        first = first[None].repeat(other["num_layers"], 1, 1)
        return (first, first) if other["rnn_type"] == "lstm" else first

    def attend(self, query, states):
        attention = self.decoder.attention
        keys = attention.key_layer(states)
        if hasattr(attention, "energy_layer"):
            inner = torch.tanh(attention.query_layer(query) + keys)
            scores = attention.energy_layer(inner).transpose(1, 2)
        else:
            scores = query @ keys.transpose(1, 2)
        return torch.softmax(scores, dim=-1) @ states

    @torch.no_grad()
    def log_probabilities(self, source, target_in):
        states, _ = self.encoder.rnn(self.embed("encoder", self.src_embed, source))
        hidden, found = self.start(states), []
        vector = torch.zeros(1, 1, self.given["decoder"]["hidden_size"], dtype=states.dtype)
        side = "encoder" if self.given["tied_embeddings"] else "decoder"
        for y in self.embed(side, self.trg_embed, target_in).split(1, dim=1):
            fed = self.given["decoder"].get("input_feeding", True)
            query, hidden = self.decoder.rnn(torch.cat([y, vector], dim=2) if fed else y, hidden)
            seen = torch.cat([query, self.attend(query, states)], dim=2)
            vector = torch.tanh(self.decoder.att_vector_layer(seen))
            found.append(torch.log_softmax(self.decoder.output_layer(vector), dim=-1)[0, 0])
        return torch.stack(found).numpy()
