"""Byte-pair tokenizers: text is split into words, words into bytes, and the pair that ranks first is joined, again and
again. The tables come with the weights; this file holds what GPT-2's descendants share."""

import base64
import re

# Contractions, words, numbers, signs, and spaces, each with one space before it.
_WORDS = re.compile(r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:_|[^\s\w])+|\s+(?!\S)|\s+")
_DIGITS = re.compile(r"\d|\D+")


def shown_bytes():
    """The character by which tables of pairs write each byte: printable ones as they are, the rest from 256 on."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + k) for k, byte in enumerate(others)}}


class BytePairs:
    """`ids` of tokens by their bytes; `ranks` of pairs of them, the least is joined first."""

    def __init__(self, ids, ranks, single_digits=False):
        self.ids, self._ranks, self._single_digits = ids, ranks, single_digits
        self._tokens = {number: token for token, number in ids.items()}
        self._known = {}

    @classmethod
    def of_ranks(cls, path):
        """A file of lines with a token in base 64 and its number, which is also its rank."""
        lines = (line.split() for line in path.read_bytes().splitlines() if line)
        ids = {base64.b64decode(token): int(number) for token, number in lines}
        return cls(ids, lambda left, right: ids.get(left + right))

    @classmethod
    def of_merges(cls, tokens, merges):
        """A list of tokens, and one of pairs in the order in which they are joined."""
        back = {shown: byte for byte, shown in shown_bytes().items()}

        def raw(word):
            return bytes(back[c] for c in word) if all(c in back for c in word) else word.encode()

        order = {tuple(map(raw, pair.split(" "))): k for k, pair in enumerate(merges)}
        return cls({raw(word): k for k, word in enumerate(tokens)}, lambda *pair: order.get(pair), single_digits=True)

    def __call__(self, text):
        parts = _DIGITS.findall(text) if self._single_digits else [text]
        return [self.ids[piece] for part in parts for word in _WORDS.findall(part) for piece in self._split(word)]

    def word(self, number):
        """A token as text, its space in front as a low line."""
        return self._tokens.get(number, b"?").decode("utf-8", "replace").replace(" ", "_").replace("\n", "\\n")

    def text(self, numbers):
        return b"".join(self._tokens.get(number, b"") for number in numbers).decode("utf-8", "replace")

    def _split(self, word):
        if word not in self._known:
            parts = [bytes([byte]) for byte in word.encode()]
            while True:
                ranked = [(rank, k) for k in range(len(parts) - 1)
                          if (rank := self._ranks(parts[k], parts[k + 1])) is not None]
                if not ranked:
                    break
                k = min(ranked)[1]
                parts[k:k + 2] = [parts[k] + parts[k + 1]]
            self._known[word] = parts
        return self._known[word]
