"""Kills at moments that are tied to the work and not to the clock."""


def kill_while_it_writes(process, store, moments):
    """Kills the process once its store has changed a random number of times; its exit code, 0 if it was done before."""
    changes, last = moments.randrange(1, 4), None
    while changes > 0 and process.poll() is None:
        now = store.stat().st_mtime_ns if store.exists() else None
        changes -= now != last
        last = now
    process.kill()
    return process.wait()
