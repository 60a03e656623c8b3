#!/usr/bin/env python3
"""The 72 attention heads of MiniLM (all-MiniLM-L6-v2) on English text, as a file for `attsvm audit`.

    examples/minilm.py FOLDER TEXT -o heads.npz

FOLDER holds model.safetensors, config.json and vocab.txt. `make audit-demo` fetches them and does the rest.
"""

import argparse
import json
import mmap
import pathlib
import re
import struct
import unicodedata

import attsvm.torch
import numpy as np
import torch
from torch import nn


def read_safetensors(path):
    """Tensors by name: eight bytes with the size of a JSON header, the header, the numbers."""
    with open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    types = {"F32": np.float32, "F16": np.float16, "I64": np.int64}
    tensors = {}
    for name, facts in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + place for place in facts["data_offsets"])
            tensors[name] = torch.tensor(np.frombuffer(data[begin:end], types[facts["dtype"]]).reshape(facts["shape"]))
    return tensors


class SelfAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.num_attention_heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, mask):
        q, k, v = (one(x).unflatten(-1, (self.num_attention_heads, -1)).transpose(1, 2)
                   for one in (self.query, self.key, self.value))
        logits = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return (logits.masked_fill(~mask[:, None, None], -torch.inf).softmax(-1) @ v).transpose(1, 2).flatten(2)


class Output(nn.Module):
    """A linear layer, the residual connection, and the norm after it."""

    def __init__(self, inputs, width):
        super().__init__()
        self.dense, self.LayerNorm = nn.Linear(inputs, width), nn.LayerNorm(width, eps=1e-12)

    def forward(self, x, before):
        return self.LayerNorm(self.dense(x) + before)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.attention = nn.ModuleDict({"self": SelfAttention(width, config["num_attention_heads"]),
                                        "output": Output(width, width)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(width, inner)})
        self.output = Output(inner, width)

    def forward(self, x, mask):
        x = self.attention["output"](self.attention["self"](x, mask), x)
        return self.output(nn.functional.gelu(self.intermediate["dense"](x)), x)


class Bert(nn.Module):
    """BERT's encoder under the names of its weights on disk."""

    def __init__(self, config):
        super().__init__()
        width = config["hidden_size"]
        self.embeddings = nn.ModuleDict({
            "word_embeddings": nn.Embedding(config["vocab_size"], width),
            "position_embeddings": nn.Embedding(config["max_position_embeddings"], width),
            "token_type_embeddings": nn.Embedding(config["type_vocab_size"], width),
            "LayerNorm": nn.LayerNorm(width, eps=config["layer_norm_eps"])})
        self.encoder = nn.ModuleDict({"layer": nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))})

    def forward(self, input_ids, attention_mask):
        table = self.embeddings
        x = table["word_embeddings"](input_ids) + table["token_type_embeddings"](torch.zeros_like(input_ids))
        x = table["LayerNorm"](x + table["position_embeddings"](torch.arange(input_ids.shape[1])))
        for layer in self.encoder["layer"]:
            x = layer(x, attention_mask.bool())
        return x


def load_model(folder):
    model = Bert(json.loads((folder / "config.json").read_text()))
    weights = {name.removeprefix("bert."): tensor for name, tensor in read_safetensors(folder / "model.safetensors").items()}
    missing = model.load_state_dict(weights, strict=False).missing_keys
    if missing:
        raise SystemExit(f"{folder}/model.safetensors: has no {missing[0]}")
    return model.eval()


class WordPiece:
    """BERT's tokenizer for lower-case text: the longest known piece first."""

    def __init__(self, path):
        self.words = path.read_text(encoding="utf-8").split("\n")
        self.ids = {word: k for k, word in enumerate(self.words)}

    def __call__(self, text):
        text = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
        pieces = [piece for word in re.findall(r"\w+|[^\w\s]", text) for piece in self._split(word)]
        return [self.ids[piece] for piece in ["[CLS]", *pieces, "[SEP]"]]

    def _split(self, word):
        pieces, begin = [], 0
        while begin < len(word):
            prefix = "##" if begin else ""
            end = next((end for end in range(len(word), begin, -1) if prefix + word[begin:end] in self.ids), None)
            if end is None:
                return ["[UNK]"]
            pieces.append(prefix + word[begin:end])
            begin = end
        return pieces


def sentences(path, tokenizer, shortest, longest):
    """Sentences of the text as ids, those of a reasonable length."""
    text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8"))
    found = [tokenizer(one) for one in re.split(r"(?<=[.;:!?]) ", text)]
    return [one for one in found if shortest <= len(one) <= longest]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("-o", "--out", required=True)
    parser.add_argument("--sentences", type=int, default=128)
    options = parser.parse_args()
    tokenizer = WordPiece(options.folder / "vocab.txt")
    chosen = sentences(options.text, tokenizer, 12, 40)[:options.sentences]
    longest = max(map(len, chosen))
    ids = torch.tensor([one + [0] * (longest - len(one)) for one in chosen])
    mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in chosen])
    heads = attsvm.torch.heads_from(load_model(options.folder), dict(input_ids=ids, attention_mask=mask),
                                    text=[[tokenizer.words[k] for k in one] for one in chosen], separators=["[SEP]"])
    heads.save(options.out, force=True)
    print(f"{options.out}: {heads}")


if __name__ == "__main__":
    main()
