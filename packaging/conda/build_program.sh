#!/usr/bin/env bash
set -euo pipefail
cmake --preset package ${CMAKE_ARGS:-} -DCMAKE_INSTALL_PREFIX="$PREFIX"
cmake --build --preset package
cmake --install build/package
