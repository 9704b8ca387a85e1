#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a bare clone buildable: missing Debian packages, then .venv with the Python packages of pyproject.toml.
#
#   tools/setup.sh system          only the Debian packages (also `make` itself)
#   tools/setup.sh system ci       those, and .ci/run's
#   tools/setup.sh venv EXTRA...   those, and .venv with the package's dependencies and the named extras
#   tools/setup.sh packages EXTRA...   only .venv, whatever the system has
#
# The extra nvcc is CUDA's compiler, where no toolkit is on PATH.
#
# As root, or where sudo asks for no password, apt-get is run; otherwise the line to run is printed.
# PYTHON chooses the interpreter (python3 by default; 3.10 or later), VENV another folder than .venv.
set -euo pipefail
cd -P "$(dirname "$0")/.."
PATH=${PATH//"$PWD/.venv/bin:"/} # make puts it first: python3 here is the machine's
python=${PYTHON:-python3}
venv=${VENV:-.venv}

say() { printf 'setup: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Compiles one line, so that a header is found wherever the compiler looks.
has_header() { command -v c++ >/dev/null && echo "#include <$1>" | c++ -std=c++17 -E -x c++ ${2:-} - >/dev/null 2>&1; }

python_include() { "$python" -c 'import sysconfig; print(sysconfig.get_path("include"))'; }

missing_packages() { # [ci]
  [ "${1:-}" != ci ] || command -v abidiff >/dev/null || echo abigail-tools
  command -v make >/dev/null || echo make
  command -v c++ >/dev/null || echo g++
  command -v openssl >/dev/null || echo openssl
  command -v pkg-config >/dev/null || echo pkg-config
  has_header gtest/gtest.h || echo libgtest-dev
  if ! command -v "$python" >/dev/null; then
    echo python3 python3-dev python3-venv
    return
  fi
  [ -f "$(python_include)/Python.h" ] || echo python3-dev
  "$python" -c 'import ensurepip' 2>/dev/null || echo python3-venv
}

install_system() { # [ci]
  local packages as_root=()
  packages=$(missing_packages "$@" | tr '\n' ' ')
  [ -z "${packages// /}" ] && return
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  if ! command -v apt-get >/dev/null; then
    die "missing: $packages(Debian's names). Install them with this system's package manager, then run again."
  fi
  if [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
    # A venv without pip can still be made where only ensurepip is missing and pip is there.
    if [ "${packages// /}" = python3-venv ] && "$python" -m pip --version >/dev/null 2>&1; then return; fi
    die "missing packages and no rights to install them; run: sudo apt-get update && sudo apt-get install -y $packages"
  fi
  say "installing $packages"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq
  # shellcheck disable=SC2086 # a list of names
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
  packages=$(missing_packages "$@" | tr '\n' ' ')
  # An interpreter that is not Debian's brings its own headers and ensurepip, or apt-get cannot help it.
  [ -z "${packages// /}" ] || die "still missing after installation: $packages(for $(command -v "$python"))"
}

check_python() {
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "$("$python" --version) at $(command -v "$python") is too old: 3.10 or later is needed (set PYTHON)"
}

make_venv() {
  if ! { [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip --version >/dev/null 2>&1; }; then
    say "making $venv with $("$python" --version)"
    rm -rf "$venv"
    if "$python" -c 'import ensurepip' 2>/dev/null; then
      "$python" -m venv "$venv"
    else
      "$python" -m venv --without-pip "$venv"
      # pip of Ubuntu 22.04 does not know --python.
      "$python" -m pip install -q --target "$("$venv/bin/python" -c 'import site; print(site.getsitepackages()[0])')" pip
    fi
  fi
  # pip of Debian 12 and Ubuntu 22.04, here too where .venv was made by hand, does not know -C, with which the Makefile
  # passes build settings.
  "$venv/bin/python" -m pip install -q "pip>=25"
}

# The requirements of the package and of the named extras, one a line, from pyproject.toml.
requirements() {
  "$venv/bin/python" - "$@" <<'PYTHON'
import sys
try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)["project"]
print(*project["dependencies"], sep="\n")
for extra in sys.argv[1:]:
    if extra != "nvcc":
        print(*project["optional-dependencies"][extra], sep="\n")
PYTHON
}

install_python_packages() {
  # One at a time, where make runs several targets.
  exec 9>"$venv/.lock"
  flock 9
  say "installing Python packages for: $*"
  local list=$venv/requirements.txt
  requirements "$@" >"$list"
  # Python compiles imported modules; to compile all of it would take half a minute.
  "$venv/bin/python" -m pip install -q --no-compile --disable-pip-version-check -r "$list"
  case " $* " in *" nvcc "*) ;; *) return ;; esac
  # The compiler from PyPI, where the build backend would ask for it too.
  PYTHONPATH=build_backend "$venv/bin/python" -c \
    'from warpcipher_build import nvcc_requirements; print(*nvcc_requirements(), sep="\n")' >"$list"
  "$venv/bin/python" -m pip install -q --no-compile --disable-pip-version-check -r "$list"
}

case "${1:-}" in
  system)
    shift
    install_system "$@"
    ;;
  venv | packages)
    [ "$1" = packages ] || install_system
    shift
    check_python
    make_venv
    install_python_packages "$@"
    ;;
  *) die "usage: tools/setup.sh system [ci] | venv EXTRA... | packages EXTRA..." ;;
esac
