"""Another solver's code in its own process: warmed up before it is timed, and killed when it takes too long."""

import math
import multiprocessing
import os
import pathlib
import resource
import time
import traceback


AGAIN = 0.05  # seconds that short calls warm up in every round, as ours do
WARM_UP = 2.0  # seconds: longer calls count even if they are the first, for what warms up is a small part of them


class Missing(Exception):
    """The peer is not installed."""


class Worker:
    """`build(*arguments)`, called in the child, returns the function to be timed. States: "ready", or why there is nothing more to come:
    "not available", "out of time", "out of memory", "failed"."""

    def __init__(self, build, *arguments, memory=None, start_limit=120, warm_up=WARM_UP):
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=serve, args=(other, build, arguments, memory), daemon=True)
        self.process.start()
        other.close()
        self.seconds, self.answer, self.peak_memory, self.state, self.reason, self.cold, self.warm_up = [], None, None, "ready", "", False, warm_up
        self._wait(start_limit)

    def _wait(self, limit):
        try:
            if not self.pipe.poll(limit):
                self._end("out of time")
                return None
            state, payload = self.pipe.recv()
        except (EOFError, ConnectionResetError):  # killed, most likely for its memory
            self.process.join(5)
            self._end("out of memory" if self.process.exitcode == -9 else "failed", f"exit code {self.process.exitcode}")
            return None
        if state != "ready":
            self._end(state, payload)
            return None
        return payload

    def round(self, budget, limit):
        """Calls for `budget` seconds, each of which may take `limit`."""
        if self.state != "ready":
            return
        try:
            self.pipe.send(budget)
        except (BrokenPipeError, ConnectionResetError):
            self._end("failed", f"exit code {self.process.exitcode}")
            return
        got = self._wait(limit + budget)
        if got is not None:
            seconds, self.answer, self.peak_memory = got
            if self.cold:  # its only call so far warmed up
                self.seconds = []
            short, first = seconds[0] < self.warm_up, not self.seconds
            self.cold = short and first and len(seconds) == 1
            self.seconds += seconds[1:] if short and first and len(seconds) > 1 else seconds

    def _end(self, state, reason=""):
        self.state, self.reason = state, reason
        self.stop()

    def stop(self):
        if self.process.is_alive():
            self.process.kill()
        self.process.join()


def resident_bytes(field):
    with open("/proc/self/status") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(field))


def timed(call, budget, most):
    """Seconds of the calls that fit into the budget, one at least, and the last answer."""
    seconds, spent = [], 0.0
    while not seconds or (spent < budget and len(seconds) < most):
        begin = time.perf_counter()
        answer = call()
        seconds.append(time.perf_counter() - begin)
        spent += seconds[-1]
    return seconds, answer


def serve(pipe, build, arguments, memory):
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    silent = os.open(os.devnull, os.O_WRONLY)  # some solvers print even when told not to
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    try:
        call = build(*arguments)
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
        pipe.send(("ready", None))
        slowest = math.inf  # call of the round before
        while True:
            budget = pipe.recv()
            if slowest < AGAIN:  # other processes used the caches meanwhile
                timed(call, AGAIN, math.inf)
            seconds, answer = timed(call, budget, 50)
            slowest = max(seconds)
            pipe.send(("ready", (seconds, answer, resident_bytes("VmHWM:"))))
    except EOFError:
        pass
    except (Missing, ImportError) as error:
        pipe.send(("not available", str(error)))
    except MemoryError:
        pipe.send(("out of memory", ""))
    except Exception as error:  # any exception of a peer is a result, not an error of the suite
        pipe.send(("failed", "".join(traceback.format_exception_only(error)).strip().splitlines()[-1][:200]))
