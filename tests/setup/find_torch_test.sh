#!/usr/bin/env bash
# cmake/FindForegradTorch.cmake: which libtorch is taken, and what is said when none fits.

set -uo pipefail

: "${FOREGRAD_SOURCE_DIR:?is set by ctest}"
cmake="${FOREGRAD_CMAKE:-cmake}"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
unset Torch_DIR CMAKE_PREFIX_PATH FOREGRAD_TORCH_PREFIX
failures=0

mkdir -p "$scratch/project"
cat >"$scratch/project/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.25)
project(Finds LANGUAGES NONE)
list(PREPEND CMAKE_MODULE_PATH "$FOREGRAD_SOURCE_DIR/cmake")
find_package(ForegradTorch REQUIRED)
CMAKE

# libtorch NAME VERSION: a folder that looks like one.
libtorch() {
  local root="$scratch/$1" part
  mkdir -p "$root/lib" "$root/share/cmake/Torch" "$root/include/ATen" "$root/include/torch/headeronly"
  touch "$root/lib/libtorch_cpu.so" "$root/lib/libc10.so" "$root/include/ATen/ATen.h"
  IFS=. read -ra part <<<"$2"
  printf '#define TORCH_VERSION_MAJOR %s\n#define TORCH_VERSION_MINOR %s\n#define TORCH_VERSION_PATCH %s\n' \
    "${part[@]}" >"$root/include/torch/headeronly/version.h"
}

# expect TEXT [NAME=VALUE…] [-D…]: configures afresh and looks for TEXT in what CMake says.
expect() {
  local text="$1" environment=() arguments=() argument output
  shift
  for argument in "$@"; do
    if [[ "$argument" == -D* ]]; then arguments+=("$argument"); else environment+=("$argument"); fi
  done
  rm -rf "$scratch/build"
  output="$(env FOREGRAD_CACHE="$scratch/cache" "${environment[@]}" \
    "$cmake" -S "$scratch/project" -B "$scratch/build" "${arguments[@]}" 2>&1)"
  if [[ "$output" != *"$text"* ]]; then
    printf 'FAILED %s\n  expected: %s\n  got:\n%s\n' "$*" "$text" "$output"
    failures=$((failures + 1))
  fi
}

libtorch mine 2.15.3
libtorch old 2.9.1
libtorch prefix/torch 2.15.1

expect "none found"
expect "make setup"
libtorch cache/torch-2.15.0/torch 2.15.0
expect "libtorch 2.15.0: $scratch/cache/torch-2.15.0/torch"
expect "libtorch 2.15.3: $scratch/mine" -DTorch_DIR="$scratch/mine/share/cmake/Torch"
expect "libtorch 2.15.3: $scratch/mine" Torch_DIR="$scratch/mine"
expect "libtorch 2.15.3: $scratch/mine" -DCMAKE_PREFIX_PATH="$scratch/mine"
expect "libtorch 2.15.1: $scratch/prefix/torch" CMAKE_PREFIX_PATH="$scratch/nothing:$scratch/prefix"
expect "libtorch 2.15.0: $scratch/cache/torch-2.15.0/torch" CMAKE_PREFIX_PATH="$scratch/nothing"
expect "libtorch 2.15.3: $scratch/mine" -DFOREGRAD_TORCH_PREFIX="$scratch/mine"
expect "\`Torch_DIR\` names no libtorch" -DTorch_DIR="$scratch/nothing"
expect "this version is not supported" -DCMAKE_PREFIX_PATH="$scratch/old"
expect "got:      2.9.1" -DCMAKE_PREFIX_PATH="$scratch/old"

if ((failures > 0)); then
  exit 1
fi
printf 'all checks passed\n'
