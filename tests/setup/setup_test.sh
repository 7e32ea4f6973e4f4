#!/usr/bin/env bash
# scripts/setup.sh against faked failures: each must end with an error that says where, what was
# expected, what came and what to do, and must leave nothing behind that looks complete. Uses no network.

set -uo pipefail

source_dir="${FOREGRAD_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}"
setup="$source_dir/scripts/setup.sh"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
failures=0
unset Torch_DIR CMAKE_PREFIX_PATH
real_python="$(command -v python3)"

# A wheel with little in it, and the requirements that pin it.
mkdir -p "$scratch/wheels"
"$real_python" - "$scratch" <<'PYTHON'
import hashlib, pathlib, sys, zipfile
scratch = pathlib.Path(sys.argv[1])
lines = []
for name, version, members in [
    ("torch", "2.15.0", ["torch/include/ATen/ATen.h", "torch/lib/libtorch_cpu.so", "torch/lib/libc10.so",
                         "torch/lib/libtorch_cuda.so", "torch/nn/functional.py"]),
    ("nvidia-cuda-runtime", "13.2.86", ["nvidia/cu13/lib/libcudart.so.13"]),
]:
    path = scratch / "wheels" / f"{name.replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            archive.writestr(member, member)
    lines.append(f"{name}=={version} --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}")
(scratch / "requirements.txt").write_text("# pinned\n" + "\n".join(lines) + "\n")
PYTHON

# fake PROGRAM BODY: puts a program first on PATH, for the case at hand. `python3 -m pip` is `fake pip`.
fake() { printf '#!/usr/bin/env bash\n%s\n' "$2" >"$bin/$1"; chmod +x "$bin/$1"; }

# begin NAME: a fresh cache and no fakes but a pip that "downloads" the wheels above.
begin() {
  name="$1"
  bin="$scratch/$name/bin"
  cache="$scratch/$name/cache"
  mkdir -p "$bin"
  fake python3 'if [[ "$1 $2" == "-m pip" ]]; then shift 2; exec "$(dirname "$0")/pip" "$@"; fi
exec '"$real_python"' "$@"'
  fake pip 'echo pip "$@" >>'"$scratch/$name/pip-calls"'
while (($# > 0)) && [[ "$1" != --dest ]]; do shift; done
(($# == 0)) || cp '"$scratch"'/wheels/*.whl "$2"'
}

run() {
  output="$(PATH="$bin:$PATH" FOREGRAD_CACHE="$cache" FOREGRAD_REQUIREMENTS="$scratch/requirements.txt" \
    "$@" timeout 60 bash "$setup" "${part:-libtorch}" 2>&1)"
  status=$?
}

check() {
  if ! eval "$2"; then
    printf 'FAILED %s: %s\n  status %s, output:\n%s\n' "$name" "$1" "$status" "$output"
    failures=$((failures + 1))
  fi
}

says() { [[ "$output" == *"$1"* ]]; }

# An error as it must be, and no libtorch in the cache.
check_error() {
  check "ends with an error" '((status == 1))'
  local expected_text="$1"
  check "says \`$1\`" 'says "$expected_text"'
  check "names where, expected, got and what to do" \
    'says "where: " && says "expected: " && says "got: " && says "to do: "'
  check "leaves no libtorch" '[[ ! -e "$cache/torch-2.15.0" ]]'
}

begin fresh
run env
check "succeeds" '((status == 0))'
check "unpacks the library" '[[ -x "$cache/torch-2.15.0/torch/lib/libtorch_cpu.so" ]]'
check "unpacks the CUDA runtime" '[[ -f "$cache/torch-2.15.0/nvidia/cu13/lib/libcudart.so.13" ]]'
check "leaves out CUDA and Python" '[[ ! -e "$cache/torch-2.15.0/torch/nn" && ! -e "$cache/torch-2.15.0/torch/lib/libtorch_cuda.so" ]]'
check "removes the wheels" '[[ ! -e "$cache/downloads" ]]'
check "requires hashes" 'grep -q -- "--require-hashes" "$scratch/fresh/pip-calls"'
run env
check "is done the second time" '((status == 0)) && [[ -z "$output" ]]'
check "fetches once" '(($(grep -c "^pip download" "$scratch/fresh/pip-calls") == 1))'
echo torn >"$cache/torch-2.15.0/foregrad-stamp"
run env
check "fetches again when the pins change" \
  '((status == 0)) && (($(grep -c "^pip download" "$scratch/fresh/pip-calls") == 2))'

begin no_network
fake pip 'echo "ERROR: Could not find a version that satisfies the requirement torch==2.15.0"; exit 1'
run env
check_error 'could not be downloaded'

begin wrong_hash_by_pip
fake pip 'cat <<TEXT
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.
    torch==2.15.0:
        Expected sha256 aaaa
             Got        bbbb
TEXT
exit 1'
run env
check_error 'not the pinned one'
check "shows both hashes" 'says aaaa && says bbbb'

begin wrong_hash_on_disk
fake pip 'while (($# > 0)) && [[ "$1" != --dest ]]; do shift; done
(($# == 0)) || cp '"$scratch"'/wheels/*.whl "$2"; echo x >>"$2"/torch-2.15.0-py3-none-any.whl'
run env
check_error 'not the pinned one'
check "removes the wrong file" '! compgen -G "$cache/downloads/torch-*.whl" >/dev/null'

begin small_disk
fake df 'printf "Filesystem 1048576-blocks Used Available Capacity Mounted on\n/dev/x 100 58 42 58%% /\n"'
run env
check_error 'not enough disk space'
check "says how much there is" 'says "42 MB"'
check "does not start a download" '[[ ! -e "$scratch/small_disk/pip-calls" ]]'

begin full_disk
fake pip 'echo "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"; exit 1'
run env
check_error 'the disk is full'

begin missing_wheel
fake pip 'exit 0'
run env
check_error 'a wheel is missing'

begin unwritable_cache
touch "$scratch/unwritable_cache/file"
cache="$scratch/unwritable_cache/file/cache"
run env
check_error 'cache folder cannot be made'

begin interrupted
mkdir -p "$scratch/interrupted/cache/unpacking.1/torch"
run env
check "succeeds after an interrupted set-up" '((status == 0))'
check "removes what that one left" '! compgen -G "$cache/unpacking.*" >/dev/null'
fake python3 'if [[ "$2" == pip ]]; then kill -TERM '"\$PPID"'; sleep 1; exit 1; fi'
rm -rf "$cache"
run env
check "ends when interrupted" '((status != 0))'
check "leaves no libtorch" '[[ ! -e "$cache/torch-2.15.0" ]]'

begin own_libtorch
mkdir -p "$scratch/own/torch/lib"
touch "$scratch/own/torch/lib/libtorch_cpu.so"
run env CMAKE_PREFIX_PATH="$scratch/nothing:$scratch/own"
check "takes the user's own" '((status == 0)) && says "yours, $scratch/own/torch"'
run env Torch_DIR="$scratch/own/share"
check "takes \`Torch_DIR\` as it is" '((status == 0)) && says "yours"'
check "downloads nothing" '[[ ! -e "$scratch/own_libtorch/pip-calls" && ! -e "$cache" ]]'
run env CMAKE_PREFIX_PATH="$scratch/nothing"
check "downloads when no prefix holds one" '((status == 0)) && [[ -e "$cache/torch-2.15.0" ]]'

# Packages: nothing of the distribution's is there, `apt-get` and `sudo` are fakes.
part=packages
begin packages
fake dpkg-query 'exit 1'
fake sudo 'exec "$@"'
fake apt-get 'echo "$*" >>'"$scratch/packages/apt-calls"
run env
check "succeeds" '((status == 0))'
check "installs what is missing" 'grep -q "install.*libspdlog-dev.*dataset-fashion-mnist" "$scratch/packages/apt-calls"'
check "updates the lists first" 'head -1 "$scratch/packages/apt-calls" | grep -q update'
check "leaves alone what is there" '! grep -q "install.* python3 " "$scratch/packages/apt-calls"'

begin packages_all_there
fake dpkg-query 'echo installed'
fake apt-get 'echo "$*" >>'"$scratch/packages_all_there/apt-calls"
run env
check "does nothing" '((status == 0)) && [[ -z "$output" && ! -e "$scratch/packages_all_there/apt-calls" ]]'

begin packages_fail
fake dpkg-query 'exit 1'
fake sudo 'exec "$@"'
fake apt-get '[[ "$*" != *install* ]]'
run env
check_error '`apt-get install` failed'
check "mentions universe" 'says universe'

if ((failures > 0)); then
  printf '%s checks failed\n' "$failures"
  exit 1
fi
printf 'all checks passed\n'
