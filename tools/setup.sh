#!/usr/bin/env bash
# Makes VENV ready: Python 3.11+, Java 17+, the package with its development tools.
# Can be run again at any time. Installs system packages only as root and where apt exists; otherwise says in one sentence what is missing.
set -euo pipefail
venv="${1:?usage: setup.sh VENV}"

say() { echo "setup: $*" >&2; }
die() { say "$*"; exit 1; }
can_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_updated=no
apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    if [ "$apt_updated" = no ]; then apt-get update -qq >/dev/null; apt_updated=yes; fi
    say "installing $* with apt"
    apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

python_fits() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
find_python() {
    local candidate
    for candidate in ${PYTHON:-} python3 python3.11 python3.12 python3.13; do
        if python_fits "$candidate"; then echo "$candidate"; return; fi
    done
    return 1
}

# The same java that PySpark starts: JAVA_HOME's, or else the first on PATH.
java_major() {
    local java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
    "$java" -version 2>&1 | sed -nE '1,3s/.*version "([0-9]+).*/\1/p' | head -1
}
java_fits() { local major; major="$(java_major || true)"; [ -n "$major" ] && [ "$major" -ge 17 ]; }

need_java() {
    java_fits && return
    if can_apt; then apt_install openjdk-17-jre-headless || apt_install openjdk-21-jre-headless || true; fi
    java_fits && return
    if [ -n "${JAVA_HOME:-}" ]; then die "JAVA_HOME=$JAVA_HOME is not Java 17 or newer; point it to one, or unset it, and run make again."; fi
    die "Java 17 or newer is needed; install it (Debian, Ubuntu: apt install openjdk-17-jre-headless) and run make again."
}

need_python() {
    if ! find_python >/dev/null && can_apt; then apt_install python3 python3-venv || true; fi
    python="$(find_python)" || die "Python 3.11 or newer is needed; install it, or name it with PYTHON=/path/to/python3, and run make again."
    # Debian ships venv's other half apart.
    "$python" -c 'import ensurepip, venv' 2>/dev/null && return
    if can_apt; then apt_install python3-venv || true; fi
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        die "Python's venv module is needed; install it (Debian, Ubuntu: apt install python3-venv) and run make again."
}

make_venv() {
    python_fits "$venv/bin/python" && [ -x "$venv/bin/pip" ] && return
    if [ -L "$venv" ] && [[ "$(cd -P "$venv" 2>/dev/null && pwd)/" != "$(pwd -P)"/* ]]; then
        die "$venv is a link that leads out of this tree, and what is there would be cleared; remove the link and run make again."
    fi
    say "creating $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
}

need_java
need_python
make_venv
say "installing nosync and its tools into $venv (the first time takes a few minutes: PySpark is large)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev]' ||
    die "pip could not install the dependencies; see its message above, and run make again."
say "ready: $("$venv/bin/python" --version), Java $(java_major)"
