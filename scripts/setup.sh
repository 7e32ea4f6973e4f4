#!/usr/bin/env bash
# Installs what a build needs: packages of the distribution (scripts/apt-packages.txt), and libtorch
# (scripts/libtorch.txt). Does nothing, quickly, where all of it is there.
#
# Packages need root or sudo. libtorch goes to ${FOREGRAD_CACHE:-${XDG_CACHE_HOME:-~/.cache}/foregrad},
# outside the build folder, is fetched once, and is left alone if `Torch_DIR` or `CMAKE_PREFIX_PATH`
# gives another one.
#
#   scripts/setup.sh             packages and libtorch
#   scripts/setup.sh packages    packages only
#   scripts/setup.sh libtorch    libtorch only
#   scripts/setup.sh python      a Python with torch and what tests the Python package; prints its path last

set -euo pipefail

scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
requirements="${FOREGRAD_REQUIREMENTS:-$scripts/libtorch.txt}"
cache="${FOREGRAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/foregrad}"
# The wheels (0.55 GB), a copy that pip makes while it downloads, what is unpacked (0.6 GB), a margin.
needed_mb=2500

say() { printf 'setup: %s\n' "$*"; }

# fail WHAT WHERE EXPECTED GOT TO_DO
fail() {
  {
    printf 'setup: error: %s\n' "$1"
    printf '  where:    %s\n' "$2"
    printf '  expected: %s\n' "$3"
    printf '  got:      %s\n' "$4"
    printf '  to do:    %s\n' "$5"
  } >&2
  exit 1
}

# --- packages of the distribution -----------------------------------------------------------------

is_installed() {
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

# missing_packages LIST
missing_packages() {
  local package probe
  while read -r package probe; do
    [[ -z "$package" || "$package" == \#* ]] && continue
    if [[ "$probe" == *' '* ]]; then
      $probe >/dev/null 2>&1 </dev/null && continue
    elif [[ "$probe" != - ]]; then
      command -v "$probe" >/dev/null && continue
    fi
    is_installed "$package" || printf '%s\n' "$package"
  done <"$scripts/$1"
}

# install_packages LIST
install_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$1")
  if ((${#missing[@]} == 0)); then
    return
  fi
  if ! command -v apt-get >/dev/null; then
    fail "packages are missing and there is no \`apt-get\`" "this machine" \
      "Debian 12 or Ubuntu 24.04" "$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-unknown}")" \
      "install what is named like these by hand: ${missing[*]}"
  fi
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "packages are missing" "this machine" "root, or a user with \`sudo\`" \
      "user $(id -un) without \`sudo\`" "as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
  say "installing ${missing[*]}"
  "${apt[@]}" update || fail "\`apt-get update\` failed" "the lines above" "the package lists" "exit status $?" \
    "check the network and /etc/apt/sources.list"
  "${apt[@]}" install -y --no-install-recommends "${missing[@]}" || fail "\`apt-get install\` failed" \
    "the lines above" "${missing[*]}" "exit status $?" \
    "free disk space or check the network; on Ubuntu they are in universe: add-apt-repository universe"
}

# --- libtorch ---------------------------------------------------------------------------------------

# The user's own libtorch, if the environment names one.
own_libtorch() {
  if [[ -n "${Torch_DIR:-}" ]]; then
    printf '%s\n' "$Torch_DIR"
    return
  fi
  local entry prefixes
  IFS=':;' read -ra prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for entry in "${prefixes[@]}"; do
    for entry in "$entry" "$entry/torch"; do
      if compgen -G "$entry/lib*/libtorch_cpu.so" >/dev/null; then
        printf '%s\n' "$entry"
        return
      fi
    done
  done
}

free_mb() { df -Pm "$1" | awk 'NR == 2 { print $4 }'; }

download() {
  local into="$1" log="$1/pip.log" status=0
  # Any Python will do: the files are for C++, so that the tags are named and not this Python's own.
  TMPDIR="$into" python3 -m pip download --no-deps --require-hashes --only-binary=:all: --no-cache-dir \
    --disable-pip-version-check --python-version 3.11 --implementation cp --abi cp311 --abi none \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_25_x86_64 --platform manylinux_2_17_x86_64 \
    --platform manylinux2014_x86_64 \
    --dest "$into" --requirement "$requirements" 2>&1 | tee "$log" || status=$?
  ((status == 0)) && return
  if grep -q 'DO NOT MATCH THE HASHES' "$log"; then
    fail "a downloaded file is not the pinned one" "$requirements" \
      "$(awk '$1 == "Expected" { print $NF; exit }' "$log")" "$(awk '$1 == "Got" { print $NF; exit }' "$log")" \
      "run \`make setup\` again; if it stays so, what you download from serves another file"
  fi
  if grep -qi 'No space left' "$log"; then
    fail "the disk is full" "$into" "$needed_mb MB" "$(free_mb "$into") MB free" \
      "free some space, or set \`FOREGRAD_CACHE\` to a folder on another disk"
  fi
  fail "libtorch could not be downloaded" "\`pip download\`, its last lines above" \
    "$(grep -v '^#' "$requirements" | cut -d' ' -f1 | xargs)" "exit status $status" \
    "check the network, the proxy and pip's settings (\`pip config list\`), then run \`make setup\` again"
}

install_libtorch() {
  local own
  own="$(own_libtorch)"
  if [[ -n "$own" ]]; then
    say "libtorch: yours, $own"
    return
  fi

  local version target stamp
  version="$(sed -n 's/^torch==\([^ ]*\).*/\1/p' "$requirements")"
  target="$cache/torch-$version"
  stamp="$(grep -v '^#' "$requirements")"
  if [[ "$(cat "$target/foregrad-stamp" 2>/dev/null)" == "$stamp" ]]; then
    return
  fi
  if [[ "$(uname -m)" != x86_64 ]]; then
    fail "there is no pinned libtorch for this machine" "$requirements" "x86_64" "$(uname -m)" \
      "give your own libtorch $version by \`CMAKE_PREFIX_PATH\`"
  fi

  mkdir -p "$cache" 2>/dev/null || fail "the cache folder cannot be made" "$cache" "a folder to write to" \
    "no permission, or no space" "set \`FOREGRAD_CACHE\` to another folder"
  # One set-up at a time; the second finds the work done.
  exec 9>"$cache/lock"
  if ! flock -n 9; then
    say "waiting for another set-up in $cache"
    flock 9
    if [[ "$(cat "$target/foregrad-stamp" 2>/dev/null)" == "$stamp" ]]; then
      return
    fi
  fi

  # What an interrupted set-up left half unpacked.
  rm -rf "$cache"/unpacking.*
  local free
  free="$(free_mb "$cache")"
  ((free >= needed_mb)) || fail "not enough disk space for libtorch" "$cache" "$needed_mb MB" "$free MB free" \
    "free some space, or set \`FOREGRAD_CACHE\` to a folder on another disk"

  local downloads="$cache/downloads" unpacked="$cache/unpacking.$$"
  mkdir -p "$downloads" "$unpacked"
  trap 'rm -rf "$unpacked"; printf "setup: interrupted; run \`make setup\` again\n" >&2; exit 130' INT TERM
  say "fetching libtorch $version (550 MB) to $cache"
  download "$downloads"
  python3 "$scripts/unpack_libtorch.py" "$requirements" "$downloads" "$unpacked" || exit 1
  printf '%s\n' "$stamp" >"$unpacked/foregrad-stamp"
  rm -rf "$target"
  mv "$unpacked" "$target"
  rm -rf "$downloads"
  trap - INT TERM
  say "libtorch $version: $target"
}

# --- Python -----------------------------------------------------------------------------------------

# What torch's wheel needs to load are the CUDA libraries, 5 GB unpacked, and as much again while pip
# has them in its hands.
python_needed_mb=10000

install_python() {
  local pins="$scripts/python-packages.txt" target="$cache/python" stamp
  stamp="$(python3 --version) $(sha256sum <"$pins")"
  if [[ "$(cat "$target/foregrad-stamp" 2>/dev/null)" == "$stamp" ]]; then
    printf '%s\n' "$target/bin/python"
    return
  fi
  mkdir -p "$cache"
  exec 8>"$cache/python-lock"
  flock 8
  if [[ "$(cat "$target/foregrad-stamp" 2>/dev/null)" != "$stamp" ]]; then
    local free
    free="$(free_mb "$cache")"
    ((free >= python_needed_mb)) || fail "not enough disk space for a Python with torch" "$cache" \
      "$python_needed_mb MB" "$free MB free" \
      "free some space, or set \`FOREGRAD_CACHE\` to a folder on another disk"
    say "installing a Python with torch in $target (2.5 GB to fetch)" >&2
    rm -rf "$target"
    python3 -m venv "$target" >&2
    TMPDIR="$cache" "$target/bin/pip" install --no-cache-dir --disable-pip-version-check --require-hashes \
      --only-binary=:all: --requirement "$pins" >&2 || fail "Python packages could not be installed" \
      "\`pip install\`, its last lines above" "Python 3.11 or 3.12, and the files of $pins" "$(python3 --version)" \
      "check the network, the proxy and pip's settings (\`pip config list\`)"
    printf '%s\n' "$stamp" >"$target/foregrad-stamp"
  fi
  printf '%s\n' "$target/bin/python"
}

case "${1:-all}" in
  all) install_packages apt-packages.txt && install_libtorch ;;
  packages) install_packages apt-packages.txt ;;
  libtorch) install_libtorch ;;
  python) install_packages apt-python-packages.txt >&2 && install_python ;;
  *) fail "unknown argument" "scripts/setup.sh" "\`packages\`, \`libtorch\`, \`python\` or none" "\`$1\`" "see the head of the script" ;;
esac
