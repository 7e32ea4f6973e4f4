#!/usr/bin/env bash
# Format, rooms, scripts, clang-tidy; every finding is an error. Runs all of them, then fails if one did.
#
#   scripts/lint.sh [JOBS]
#
# `TIDY` chooses what clang-tidy reads (10 to 20 s a file, most of it libtorch's headers):
#   sources   all but the tests (the default)
#   changed   what differs from the last commit
#   all       the tests too
#   none

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs="${1:-$(nproc)}"
failed=()

step() {
  local name="$1"
  shift
  printf 'lint: %s\n' "$name"
  "$@" || failed+=("$name")
}

check_format() { scripts/cxx_files.sh | xargs -r clang-format --dry-run -Werror --ferror-limit=5; }

check_scripts() {
  local script
  for script in scripts/*.sh .ci/run tests/*/*.sh; do
    bash -n "$script" || return 1
  done
  python3 - scripts/*.py tests/*/*.py python/foregrad/*.py* <<'PYTHON'
import ast, pathlib, sys
for path in sys.argv[1:]:
    ast.parse(pathlib.Path(path).read_text(), path)
PYTHON
}

files_to_tidy() {
  case "${TIDY:-sources}" in
    all) scripts/cxx_files.sh | grep '\.cc$' ;;
    sources)
      # The tool is built once `foregrad/compile.h` is there; clang-tidy knows only what is built.
      local folders=(src bench examples)
      [[ ! -f include/foregrad/compile.h ]] || folders+=(cli)
      scripts/cxx_files.sh "${folders[@]}" | grep '\.cc$' ;;
    changed) git diff --name-only --diff-filter=d HEAD -- '*.cc' && git ls-files --others --exclude-standard -- '*.cc' ;;
    none) ;;
    *) printf 'lint: error: `TIDY`: expected `sources`, `changed`, `all` or `none`, got `%s`\n' "$TIDY" >&2; return 1 ;;
  esac
}

# clang-tidy has its own build folder: the release one holds GCC's precompiled header, which Clang
# cannot read. Only configured, never built. OpenMP off: Clang's <omp.h> need not be installed.
check_tidy() {
  local files count
  files="$(files_to_tidy)" || return 1
  [[ -n "$files" ]] || return 0
  count="$(wc -l <<<"$files")"
  printf 'lint: %s files\n' "$count"
  cmake --preset release -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DFOREGRAD_UNITY_TESTS=OFF \
    -DCMAKE_CXX_COMPILER_LAUNCHER=env >build/lint.log 2>&1 || { cat build/lint.log; return 1; }
  # Warnings in libtorch's headers are counted by clang-tidy on stderr, one line a file.
  xargs -n 1 -P "$jobs" clang-tidy -p build/lint --quiet --extra-arg=-fno-openmp <<<"$files" \
    2> >(grep -vE '^[0-9]+ warnings? (generated|treated)' >&2)
}

mkdir -p build
step 'format (`make format` corrects it)' check_format
step 'rooms' python3 scripts/check_rooms.py
step 'scripts' check_scripts
step 'clang-tidy' check_tidy

if ((${#failed[@]} > 0)); then
  printf 'lint: failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
printf 'lint: clean\n'
