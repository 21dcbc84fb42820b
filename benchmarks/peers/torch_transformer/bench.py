"""torch.nn.Transformer, trained as in PyTorch's tutorial."""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import protocol

VARIANTS = {"train": protocol.IN_FLOATS}
ON_GPU = {"train": protocol.IN_FLOATS + protocol.COMPILED}


def train(request: protocol.Request) -> protocol.Answer:
    """Take training steps: forward, cross-entropy with label smoothing, backward, AdamW."""
    import torch
    from torch import nn

    shape = request["model"]
    protocol.only_paper_shape(shape)
    torch.manual_seed(1)
    torch.set_num_threads(request["threads"])
    device = torch.device(request["device"])
    longest = max(len(rows[0]) for rows in protocol.sides(request))
    width, padding = shape["d_model"], shape["pad"]

    class Model(nn.Module):
        """nn.Transformer with one matrix shared by both embeddings and the output layer."""

        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(shape["vocabulary"], width)
            nn.init.normal_(self.table.weight, 0.0, width**-0.5)
            self.layers = nn.Transformer(
                width,
                shape["heads"],
                shape["encoder_layers"],
                shape["decoder_layers"],
                shape["d_ff"],
                shape["dropout"],
                shape["activation"],
                batch_first=True,
            )
            self.dropout = nn.Dropout(shape["dropout"])
            rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
            angles = torch.outer(torch.arange(longest), rates)
            positions = torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)
            self.register_buffer("positions", positions)

        def embed(self, ids: torch.Tensor) -> torch.Tensor:
            return self.dropout(self.table(ids) * math.sqrt(width) + self.positions[: ids.size(1)])

        def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            hidden = source == padding
            later = nn.Transformer.generate_square_subsequent_mask(target.size(1), device)
            states = self.layers(
                self.embed(source),
                self.embed(target),
                tgt_mask=later.isinf(),
                src_key_padding_mask=hidden,
                memory_key_padding_mask=hidden,
                tgt_key_padding_mask=target == padding,
                tgt_is_causal=True,
            )
            return nn.functional.linear(states, self.table.weight)

    model = Model().to(device)
    versions = {"torch": torch.__version__}
    return protocol.train_in_torch(request, model, model, device, versions)


protocol.serve(VARIANTS, {"train": train}, ON_GPU)
