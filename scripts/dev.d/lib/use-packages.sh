#!/usr/bin/env bash
# Usage: bash scripts/dev.d/lib/use-packages.sh mpich|openmpi
#
# Tests the packages in target/with on a bare system (scripts/dev package-test), as root. Installs
# the Debian package, builds and runs the first program of its README and a Global Arrays program with
# it, and removes it; no files may remain. Unpacks the tarball in one place and then moves it to
# another. In each place, builds a program with pkg-config and runs it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../../env.sh"

trace() { # lists all files that packages may have installed
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /root -o -path /home \
    -o -path /var/cache -o -path /var/log -o -path '/var/lib/dpkg/*-old' -o -path /var/lib/apt \) -prune -o -print | sort
}

mpi=$1
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
"portolan-info-$mpi" | sed -n 1,5p
"portolan-report-$mpi" --sample /tmp/sample && "portolan-report-$mpi" -q -o /tmp/sample.html /tmp/sample
"${LAUNCH[@]}" -n 2 "portolan-perf-$mpi" --quick --sizes 8:8 put_lat | grep put_lat
read -ra ga <<<"$("$GA_CONFIG" --cppflags) $("$GA_CONFIG" --ldflags)"
read -ra flags <<<"$("$GA_CONFIG" --libs) $("$GA_CONFIG" --flibs)"
doc=/usr/share/doc/portolan-$mpi
ls "$doc/README.md" "$doc/docs/observe.md" "$doc/docs/observe-slow.png"
# The first program, by the command of the README.
first() { # README, DIR of the tarball
  (cd /tmp && eval "$(grep -o '^    DIR=.*' "$1")" && DIR=${2:-$DIR} && eval "$(grep -o "^    $MPICC .*" "$1")")
  "${LAUNCH[@]}" -n 2 /tmp/hello | grep '^rank 1 of 2: 100 from rank 0$'
}
first "$doc/README.md"
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
  if [[ $place != *' '* ]]; then first "$place/share/doc/portolan/README.md" "$place"; fi
  gcc -O1 tests/c/values.c -o /tmp/values "${flags[@]}"
  ldd /tmp/values | grep "libportolan.so.0 => $place/lib/"
  PORTOLAN_TEST_RANKS=2 "${LAUNCH[@]}" -n 2 /tmp/values | grep '^PASS values$'
  for program in info perf report; do "$place/bin/portolan-$program" --help >/dev/null; done
done
echo "packages for $mpi: ok"
