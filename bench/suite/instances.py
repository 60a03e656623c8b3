"""The problems: each is generated once by attsvm, written to a file, and read from there by all solvers."""

import array
import dataclasses
import struct
import zipfile
import zlib

# What `attsvm generate` is asked for, by kind of problem.
RECIPES = {
    "random": ["random"],
    "separable": ["separable"],
    "low rank": ["separable", "--rank", "32"],
    "prompt": ["separable", "--attention", "prompt"],
    "sets": ["random"],
    "head": ["random"],
    "infeasible": ["infeasible"],
}


@dataclasses.dataclass(frozen=True)
class Instance:
    kind: str
    n: int
    T: int
    d: int
    number: int = 0  # of the draw

    @property
    def size(self):
        return f"({self.n},{self.T},{self.d})"

    @property
    def unknowns(self):
        return self.d if self.kind == "prompt" else self.d * self.d

    @property
    def rows(self):
        return self.n * (self.T - 1)

    @property
    def matrix_bytes(self):
        """Of the rows written out, as general solvers want them."""
        return 8 * self.rows * self.unknowns

    def file(self, programs):
        """The path of the task, which is generated if it does not exist."""
        recipe = f"{zlib.crc32(repr(RECIPES[self.kind]).encode()):08x}"  # so that files of another recipe are not reused
        name = "_".join(map(str, (self.kind.replace(" ", "-"), self.n, self.T, self.d, self.number, recipe)))
        path = programs.folder / f"{name}.npz"
        if not path.exists():
            beside = programs.folder / f"{name}.part.npz"
            programs.attsvm("generate", *RECIPES[self.kind], "--n", self.n, "--T", self.T, "--d", self.d, "--seed", 1, "--instance", self.number,
                            "-o", beside, "--force")
            if self.kind == "sets":
                keep_two(beside, self.n, self.T)
            if self.kind == "head":
                as_a_head(beside, self.n, self.T, self.d)
            beside.replace(path)
        return path


def npy(form, shape, data):
    """The bytes of an array in a task file."""
    header = f"{{'descr': '{form}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def numbers(file, name):
    """A task file's array of doubles."""
    data = file.read(f"{name}.npy")
    return array.array("d", data[10 + struct.unpack_from("<H", data, 8)[0]:])


def keep_two(path, n, T):
    """Adds a selection to a task file: every query keeps its first two tokens (they are as random as any)."""
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("select.npy", npy("|b1", (n, T), bytes([1, 1] + [0] * (T - 2)) * n))


LEAST = 1e-2  # size of a head's last coordinate relative to its first; in trained ones 1e-1 to 1e-4


def as_a_head(path, n, T, d):
    """Makes of a random task one like those of trained heads: coordinates of unequal size, so that rows have few directions;
    every query keeps the token with the largest product, but for the tenth of queries where two are nearly as large."""
    sizes = [LEAST ** (j / (d - 1)) for j in range(d)]
    with zipfile.ZipFile(path) as file:
        tokens, queries = ([[x * size for x, size in zip(all_[k:k + d], sizes)] for k in range(0, len(all_), d)]
                           for all_ in (numbers(file, "tokens"), numbers(file, "queries")))
    choices = []
    for i, query in enumerate(queries):
        logits = [sum(x * z for x, z in zip(token, query)) for token in tokens[i * T:(i + 1) * T]]
        top, below = sorted(logits)[:-3:-1]
        choices.append((top - below, i, logits.index(top)))
    chosen = sorted((i, token) for _, i, token in sorted(choices)[n // 10:])
    with zipfile.ZipFile(path, "w") as file:
        for name, shape, rows in (("tokens", (len(chosen), T, d), [row for i, _ in chosen for row in tokens[i * T:(i + 1) * T]]),
                                  ("queries", (len(chosen), d), [queries[i] for i, _ in chosen])):
            file.writestr(f"{name}.npy", npy("<f8", shape, b"".join(array.array("d", row).tobytes() for row in rows)))
        keep = b"".join(bytes(int(t == token) for t in range(T)) for _, token in chosen)
        file.writestr("select.npy", npy("|b1", (len(chosen), T), keep))
