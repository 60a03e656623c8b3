"""Progress bars in terminals and notebooks; no output elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable

_PATIENCE = 0.5  # seconds before a bar appears; most calls are over by then


def _watched() -> bool:
    """Whether stderr is a terminal or belongs to a notebook."""
    if "ipykernel" in sys.modules:
        return True
    stream = sys.stderr
    return stream is not None and hasattr(stream, "isatty") and stream.isatty()


class _Line:
    """A one-line replacement where tqdm is not installed."""

    def __init__(self, total: int | None, desc: str):
        self._total, self._desc, self._begin = total, desc, time.monotonic()

    def show(self, done: int, text: str) -> None:
        share = f"{100 * done / self._total:3.0f}% {done}/{self._total}" if self._total else str(done)
        elapsed = time.monotonic() - self._begin
        print(f"\r\x1b[K{self._desc}: {share} [{elapsed:.0f}s{', ' + text if text else ''}]", end="", file=sys.stderr,
              flush=True)

    def close(self) -> None:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


class _Tqdm:
    def __init__(self, tqdm: Any, total: int | None, desc: str):
        self._bar = tqdm(total=total, desc=desc, leave=False)

    def show(self, done: int, text: str) -> None:
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        self._bar.close()


class Bar:
    """Called with the state of the work, which `describe` turns into (amount done, text)."""

    def __init__(self, desc: str, total: int | None, describe: Callable[..., tuple[int, str]], at_once: bool):
        self._desc, self._total, self._describe = desc, total, describe
        self._appears = time.monotonic() + (0 if at_once else _PATIENCE)
        self._shown: Any = None

    def __call__(self, *state: Any) -> None:
        if self._shown is None:
            if time.monotonic() < self._appears:
                return
            try:
                from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
                self._shown = _Tqdm(tqdm, self._total, self._desc)
            except ImportError:
                self._shown = _Line(self._total, self._desc)
        self._shown.show(*self._describe(*state))

    def close(self) -> None:
        if self._shown is not None:
            self._shown.close()
            self._shown = None


class _Hidden:
    """No bar: C++ gets None and calls nothing."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: Any) -> None:
        pass


class _Shown:
    def __init__(self, bar: Bar):
        self._bar = bar

    def __enter__(self) -> Bar:
        return self._bar

    def __exit__(self, *_: Any) -> None:
        self._bar.close()


_HIDDEN = _Hidden()


def receiver(callback: Callable[[Any], Any] | None, kind: Callable[..., Any]) -> Callable[..., Any] | None:
    """What C++ calls with the numbers of a state, so that the user's callback gets them as one object."""
    return None if callback is None else lambda *state: callback(kind(*state))


def bar(progress: bool | None, desc: str, total: int | None, describe: Callable[..., tuple[int, str]]) -> Any:
    """A context with the bar, or with None if it is hidden. progress=None shows it in terminals and notebooks."""
    if progress is False or (progress is None and not _watched()):
        return _HIDDEN
    return _Shown(Bar(desc, total, describe, progress is True))
