#!/usr/bin/env bash
# Installs Foregrad below a folder of its own, moves that folder, and configures, builds and runs a
# project outside the tree against it: `find_package(Foregrad)` is all that the project knows.

set -euo pipefail

: "${FOREGRAD_SOURCE_DIR:?is set by ctest}" "${FOREGRAD_BINARY_DIR:?is set by ctest}"
cmake="${FOREGRAD_CMAKE:-cmake}"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
# The package must find libtorch by what it recorded.
unset Torch_DIR CMAKE_PREFIX_PATH FOREGRAD_CACHE
export XDG_CACHE_HOME="$scratch/no-cache"

fail() { printf 'packaging: %s\n' "$*" >&2; exit 1; }

"$cmake" --install "$FOREGRAD_BINARY_DIR" --prefix "$scratch/first" >"$scratch/install.log" ||
  { cat "$scratch/install.log"; fail "cmake --install failed"; }
mv "$scratch/first" "$scratch/moved"

! grep -rlF -e "$FOREGRAD_SOURCE_DIR" -e "$scratch/first" "$scratch/moved" --include='*.cmake' --include='*.h' ||
  fail "an installed file names the source or the first prefix"

cp -r "$FOREGRAD_SOURCE_DIR/tests/packaging/outside" "$scratch/outside"
flags=()
[[ -z "${FOREGRAD_SANITIZE:-}" ]] || flags=(-DCMAKE_CXX_FLAGS="-fsanitize=$FOREGRAD_SANITIZE")
"$cmake" -S "$scratch/outside" -B "$scratch/build" -G Ninja -DCMAKE_CXX_COMPILER="${FOREGRAD_CXX:-c++}" \
  -DCMAKE_PREFIX_PATH="$scratch/moved" "${flags[@]}"
"$cmake" --build "$scratch/build"
"$scratch/build/outside"

# A version that is not there is refused.
if "$cmake" -S "$scratch/outside" -B "$scratch/refused" -G Ninja -DCMAKE_CXX_COMPILER="${FOREGRAD_CXX:-c++}" \
  -DCMAKE_PREFIX_PATH="$scratch/moved" -DOUTSIDE_WANTS=99.0 >"$scratch/refused.log" 2>&1; then
  fail "Foregrad 99.0 was found"
fi

if [[ -x "$scratch/moved/bin/foregrad" ]]; then
  "$scratch/moved/bin/foregrad" --version
fi
