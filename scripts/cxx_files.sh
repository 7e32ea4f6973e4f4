#!/usr/bin/env bash
# Prints this project's C++ files, or those below the folders given, one a line.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($# > 0)) || set -- src include cli bench examples python tests
for folder in "$@"; do
  [[ ! -d "$folder" ]] || find "$folder" \( -name '*.cc' -o -name '*.h' \) -type f
done | sort
