"""The problems: each is generated once by attsvm, written to a file, and read from there by all solvers."""

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
            beside.replace(path)
        return path


def keep_two(path, n, T):
    """Adds a selection to a task file: every query keeps its first two tokens (they are as random as any)."""
    header = f"{{'descr': '|b1', 'fortran_order': False, 'shape': ({n}, {T}), }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    mask = bytes([1, 1] + [0] * (T - 2)) * n
    with zipfile.ZipFile(path, "a") as file:
        file.writestr("select.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + mask)
