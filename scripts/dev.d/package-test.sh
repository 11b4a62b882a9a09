#!/usr/bin/env bash
# Usage: scripts/dev package-test [--mpi mpich|openmpi|all]
#
# Makes the packages of scripts/package.sh, and tests them on a bare system of scripts/dev fresh.
# The Debian package must pass lintian. It is installed, a Global Arrays program is built against
# it and run, and the package is removed; no files may remain. The tarball is unpacked in one place
# and then moved to another. In each place, a program is built with pkg-config and run. The last
# line is `N passed, N failed`. The exit code is 77 if no bare system can be made.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

# ------------------------------------------------------ within the bare system

trace() { # lists all files that packages may have installed
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /root -o -path /home \
    -o -path /var/cache -o -path /var/log -o -path '/var/lib/dpkg/*-old' -o -path /var/lib/apt \) -prune -o -print | sort
}

inside() { # mpi
  local mpi=$1 dir doc ga runtime deb tar moved place flags
  use_mpi "$mpi"
  deb=$(echo target/with/*.deb) tar=$(echo target/with/*.tar.gz)
  case $mpi in mpich) runtime=(mpich libmpich-dev libscalapack-mpich-dev) ;; *) runtime=(openmpi-bin libopenmpi-dev libscalapack-openmpi-dev) ;; esac
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends gcc libc6-dev pkg-config libglobalarrays-dev libblas-dev \
    liblapack-dev "${runtime[@]}" >/dev/null
  use_mpi "$mpi" # again, because its tools are now installed
  trace >/tmp/before

  apt-get -qq install -y --no-install-recommends "./$deb" >/dev/null
  dir=$(dpkg -L "portolan-$mpi" | grep "/portolan/$mpi\$")
  "portolan-info-$mpi" | head -n 5
  "portolan-report-$mpi" --sample /tmp/sample && "portolan-report-$mpi" -q -o /tmp/sample.html /tmp/sample
  "${LAUNCH[@]}" -n 2 "portolan-perf-$mpi" --quick --sizes 8:8 put_lat | grep put_lat
  read -ra ga <<<"$("$GA_CONFIG" --cppflags) $("$GA_CONFIG" --ldflags)"
  read -ra flags <<<"$("$GA_CONFIG" --libs) $("$GA_CONFIG" --flibs)"
  doc=/usr/share/doc/portolan-$mpi
  ls "$doc/README.md" "$doc/docs/observe.md" "$doc/docs/observe-slow.png" "$doc/docs/layers.svg"
  "$MPICC" -O2 -pthread "-I$dir/include" "${ga[@]}" "$doc/examples/c/ga_matmul.c" -o /tmp/ga_matmul "-L$dir/lib" \
    "-Wl,-rpath,$dir/lib" "${ga[@]}" "${flags[@]}" -lm
  ldd /tmp/ga_matmul | grep "libportolan.so.0 => $dir/lib/"
  "${LAUNCH[@]}" -n 2 /tmp/ga_matmul | grep '^ga_matmul: ok$'
  apt-get -qq purge -y "portolan-$mpi" >/dev/null
  trace >/tmp/after
  diff /tmp/before /tmp/after || die "the package leaves traces"

  # Test the tarball in one place, then move it and test it again.
  moved=/opt/one
  for place in /opt/one "/srv/another place"; do
    mkdir -p "${place%/*}"
    if [[ $place == /opt/one ]]; then
      tar -xzf "$tar" -C /opt && mv /opt/portolan-* /opt/one
    else
      mv "$moved" "$place" && moved=$place
    fi
    # eval, because pkg-config escapes the blank in the path for a shell.
    eval "flags=($(PKG_CONFIG_PATH=$place/lib/pkgconfig pkg-config --cflags --libs armci))"
    ls "$place/share/doc/portolan/docs/observe-slow.png"
    gcc -O1 "$place/share/doc/portolan/examples/c/hello.c" -o /tmp/hello "${flags[@]}"
    gcc -O1 tests/c/values.c -o /tmp/values "${flags[@]}"
    ldd /tmp/values | grep "libportolan.so.0 => $place/lib/"
    PORTOLAN_TEST_RANKS=2 "${LAUNCH[@]}" -n 2 /tmp/values | grep '^PASS values$'
    for program in info perf report; do "$place/bin/portolan-$program" --help >/dev/null; done
  done
  echo "packages for $mpi: ok"
}

mpi=all
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    __inside) inside "$2" && exit ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done

# --------------------------------------------------------------------- outside

mpis=() && choose_mpis "$mpi"
cd "$ROOT"
scripts/dev fresh check
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[[ $release == bookworm || $release == trixie ]] || {
  echo "fresh: cannot run here: packages are made on Debian 12 or 13" >&2
  exit 77
}
passed=0 failed=0
packages=$(mktemp -d)
trap 'rm -rf "$packages"' EXIT
count() { # name, command ...
  local code=0
  "${@:2}" || code=$?
  if ((code == 0)); then
    echo "ok   $1" && passed=$((passed + 1))
  else
    echo "FAIL $1: exit code $code" && failed=$((failed + 1))
  fi
}
for m in "${mpis[@]}"; do
  [[ " ${ALL_MPIS[*]} " == *" $m "* ]] || continue
  rm -f "$packages"/*
  scripts/package.sh --mpi "$m" --output "$packages"
  if command -v lintian >/dev/null; then
    count "$m: lintian" lintian --fail-on error --allow-root "$packages"/*.deb
  else
    echo "skip $m: lintian: it is not installed"
  fi
  with=()
  for file in "$packages"/*; do with+=(--with "$file"); done
  count "$m: install, use, remove" scripts/dev fresh --release "$release" "${with[@]}" -- \
    bash -e scripts/dev.d/package-test.sh __inside "$m"
done
echo "$passed passed, $failed failed"
((failed == 0))
