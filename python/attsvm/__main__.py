"""python -m attsvm: the command line."""

import sys

from . import _core


def main() -> int:
    """Runs the command line with this process's arguments and returns its exit code."""
    return _core.run_command(["attsvm", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
