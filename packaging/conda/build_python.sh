#!/usr/bin/env bash
set -euo pipefail
"$PYTHON" -m pip install . -vv --no-deps --no-build-isolation
