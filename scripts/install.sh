#!/usr/bin/env bash
# Usage: [DESTDIR=ROOT] scripts/install.sh --mpi M --prefix DIR [--tls] [--debug] [--no-setup]
#        [DESTDIR=ROOT] scripts/install.sh --uninstall --prefix DIR
#
# Builds Portolan for one MPI and installs into DIR:
#   lib/libportolan.so.*, lib/libportolan.a   the library
#   lib/libarmci.so, lib/libarmci-MPI.a, ...  links, under the names that programs link
#   lib/libarmci.so.1                         a link, under the soname of a shared ARMCI-MPI
#   lib/pkgconfig/*.pc, lib/cmake/Portolan    files for pkg-config and CMake
#   lib/libmercury2.so.0                      Mercury 2.4's calls under their own names
#   lib/mercury-2.4/                          a prefix for programs that look for Mercury 2.4
#   include/, bin/, share/man                 headers, programs and their manual pages
#   share/modulefiles                         a modulefile for Lmod and Environment Modules
#   share/portolan/files                      the list of these files
#
#   --tls        services over tcp can use TLS (PORTOLAN_RPC_TLS_DIR); docs/mercury.md describes it
#   --debug      keep the debug information
#   --no-setup   install no missing packages, as scripts/setup.sh would
#   --uninstall  remove the files that share/portolan/files lists, and directories that are then empty.
#                If the list names a file outside DIR, nothing is removed
#
# M is mpich, openmpi, system (the mpicc in PATH) or the path of an mpicc. Each MPI needs its own
# DIR. With DESTDIR set, the files go to ROOT/DIR, for packaging. The installation is relocatable:
# only the modulefile contains DIR, and uses it if the file is copied to another place.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/env.sh"

prefix='' tls='' debug='' mpi='' uninstall='' setup=1
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --prefix) needs_value "$@" && prefix=$2 && shift 2 ;;
    --tls) tls=1 && shift ;;
    --debug) debug=1 && shift ;;
    --no-setup) setup='' && shift ;;
    --uninstall) uninstall=1 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
[[ -n $prefix ]] || die "--prefix is needed, see --help"

if [[ -n $uninstall ]]; then
  target=${DESTDIR:-}$prefix list=share/portolan/files
  [[ -r $target/$list ]] || die "$target is not an installation of Portolan: there is no $list"
  target=$(cd "$target" && pwd -P)
  cd "$target"
  mapfile -t files < <(cat "$list" && echo "$list")
  # All names are checked before the first file is removed. A directory may also be a link that
  # leads out of the prefix.
  for file in "${files[@]}"; do
    directory=./
    if [[ $file == */* ]]; then directory=./${file%/*}/; fi
    if [[ -z $file || $file == /* || /$file/ == */../* ]] ||
      { [[ -d $directory ]] && [[ $(cd "$directory" && pwd -P)/ != "${target%/}/"* ]]; }; then
      die "$target/$list names '$file', which is not a file of $target; nothing was removed"
    fi
  done
  for file in "${files[@]}"; do
    rm -f "./$file"
    if [[ $file == */* ]]; then rmdir -p --ignore-fail-on-non-empty "./${file%/*}" 2>/dev/null || true; fi
  done
  rmdir --ignore-fail-on-non-empty "$target"
  echo "install: removed Portolan from $target"
  exit
fi

[[ -n $mpi ]] || die "--mpi is needed, see --help"
if [[ -n $setup ]]; then complete_mpi "$mpi"; else use_mpi "$mpi"; fi

# What programs are built for, and the compiler wrapper that they use.
built_for=$MPI wrapper=$MPICC
if [[ $MPI_NAME == abi ]]; then built_for=abi wrapper=$MPICC_ABI; fi

# The interfaces, one per line: the pkg-config and CMake name, then the link names.
FACES=(
  "armci armci armci-$built_for"
  "x10 x10"
  "lapi lapi_r"
  "compose compose"
  "mercury mercury"
  "mercury2 mercury2"
  "na na"
)
PROGRAMS=(portolan-info portolan-perf portolan-report)

if [[ -n ${DESTDIR:-} ]]; then
  [[ $prefix == /* ]] || die "with DESTDIR, --prefix wants an absolute path"
else
  mkdir -p "$prefix"
  prefix=$(cd "$prefix" && pwd)
fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# All files are made in this directory and then moved to the prefix.
stage=$tmp/stage lib=$tmp/stage/lib
mkdir -p "$lib/pkgconfig" "$lib/cmake/Portolan" "$stage"/{include,bin,share/man/man1,share/portolan,share/modulefiles/portolan}

cd "$ROOT"
share_crates
touch "$tmp/start" # later edits are not part of the installation
cargo build --release -p portolan-capi -p portolan-tools ${tls:+--features portolan-capi/tls}
built=$CARGO_TARGET_DIR/release
version=$(cargo pkgid -p portolan) && version=${version##*[#@]}
soname=$(objdump -p "$built/libportolan.so" | awk '$1 == "SONAME" { print $2 }')
[[ -n $soname ]] || die "libportolan.so has no soname"

# Prints the symbols to weaken in the static library, because Rust cannot define weak symbols:
# ARMCI_X for each PARMCI_X and so on, for profilers that define ARMCI_X themselves, and the MPI
# calls that the library wraps, because the program or a tool may also wrap them.
weak_symbols() {
  nm -g --defined-only -P "$1" 2>/dev/null | awk '
    /^[Pp]armci_|^PARMCI_|^PLAPI_|^plapi_/ { twin[substr($1, 2)] }
    /^armci_msg_(group_)?barrier |^MPI_|^mpi_(init|init_thread|init_f08|init_thread_f08|finalize|finalize_f08)_* / { print $1 }
    END { for (name in twin) print name }' | sort -u
}

install_libraries() {
  local file=libportolan.so.$version name
  install -m 644 "$built/libportolan.so" "$tmp/$file"
  weak_symbols "$built/libportolan.a" >"$tmp/weak"
  objcopy --weaken-symbols="$tmp/weak" "$built/libportolan.a" "$tmp/libportolan.a"
  if [[ -z $debug ]]; then
    strip --strip-unneeded "$tmp/$file"
    strip --strip-debug "$tmp/libportolan.a"
  fi
  install -m 644 "$tmp/$file" "$tmp/libportolan.a" "$lib/"
  ln -sf "$file" "$lib/$soname"
  for name in portolan $(printf '%s\n' "${FACES[@]}" | cut -d ' ' -f 2-); do
    ln -sf "$soname" "$lib/lib$name.so"
    [[ $name == portolan ]] || ln -sf libportolan.a "$lib/lib$name.a"
  done
  # Programs that are linked with a shared ARMCI-MPI request this name.
  ln -sf "$soname" "$lib/libarmci.so.1"
}

# Installs -lmercury2, which is a linker script. Programs compiled with include/mercury2 refer to
# mercury2_HG_Init and so on, which libportolan.so defines. Code that looks up the name HG_Init
# finds it in libmercury2.so.0, which jumps to mercury2_HG_Init.
install_mercury2() {
  local jump name
  case $(uname -m) in
    x86_64) jump='jmp *NAME@GOTPCREL(%rip)' ;;
    aarch64) jump='b NAME' ;;
    riscv64) jump='tail NAME' ;;
    *)
      echo "install: no libmercury2.so.0 for $(uname -m); programs compiled with include/mercury2 do without" >&2
      return
      ;;
  esac
  nm -D --defined-only -P "$lib/$soname" | sed -n 's/^mercury2_\([^ ]*\) T.*/\1/p' >"$tmp/names"
  [[ -s $tmp/names ]] || die "libportolan.so has no calls of Mercury 2.4"
  while read -r name; do
    printf '.globl %s\n.type %s,@function\n%s:\n\t%s\n.size %s,.-%s\n' \
      "$name" "$name" "$name" "${jump/NAME/mercury2_$name}" "$name" "$name"
  done <"$tmp/names" >"$tmp/mercury2.s"
  echo '.section .note.GNU-stack,"",%progbits' >>"$tmp/mercury2.s"
  "$MPICC" -shared -nostdlib -Wl,-z,now -Wl,-soname,libmercury2.so.0 -Wl,-rpath,'$ORIGIN' \
    -x assembler "$tmp/mercury2.s" -x none -L"$lib" -l:"$soname" -Wl,--no-as-needed -lc -o "$tmp/libmercury2.so.0"
  [[ -n $debug ]] || strip --strip-unneeded "$tmp/libmercury2.so.0"
  install -m 644 "$tmp/libmercury2.so.0" "$lib/"
  rm "$lib/libmercury2.so" # a link to the library
  echo "INPUT ( AS_NEEDED ( libmercury2.so.0 ) $soname )" >"$lib/libmercury2.so"
}

# Installs the prefix lib/mercury-2.4, in which find_package(mercury CONFIG) and pkg-config find
# Mercury 2.4 under its own names. Programs link libmercury2.so.0 and libportolan.so of lib/.
install_mercury_prefix() {
  local own=$lib/mercury-2.4 name target
  rm -rf "$own"
  mkdir -p "$own/lib/pkgconfig" "$own/lib/cmake/mercury"
  ln -s ../../include/mercury2 "$own/include"
  # CMake links a library of a .pc file by its path, without the other directories of the file. The
  # linker then looks for what the scripts below name in their own directory.
  ln -s "../../$soname" ../../libmercury2.so.0 "$own/lib/"
  for name in mercury na mercury_util; do
    cp "$lib/libmercury2.so" "$own/lib/lib$name.so"
    case $name in mercury) target=2.4.1 ;; na) target=6.0.0 ;; mercury_util) target=4.1.0 ;; esac
    cat >"$own/lib/pkgconfig/$name.pc" <<PC
prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: $name
Description: Mercury 2.4's interface of Portolan $version, built for $built_for
Version: $target
Cflags: -I\${includedir} $(mpi_flags compile)
Libs: -L\${libdir} -L\${prefix}/.. -Wl,-rpath,\${prefix}/.. -l$name $(mpi_flags link)
PC
  done
  cat >"$own/lib/cmake/mercury/mercury-config.cmake" <<CMAKE
# Mercury 2.4's interface of Portolan $version for $built_for. All targets are the same library.
get_filename_component(_mercury "\${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
get_filename_component(_mercury_libs "\${_mercury}/.." ABSOLUTE)
set(MERCURY_VERSION_MAJOR 2)
set(MERCURY_VERSION_MINOR 4)
set(MERCURY_VERSION_PATCH 1)
set(MERCURY_VERSION 2.4)
set(MERCURY_VERSION_FULL 2.4.1)
set(MERCURY_BUILD_SHARED_LIBS ON)
set(MERCURY_USE_BOOST_PP ON)
set(MERCURY_USE_CHECKSUMS ON)
foreach(_mercury_name mercury na mercury_util)
  if(NOT TARGET \${_mercury_name})
    add_library(\${_mercury_name} SHARED IMPORTED)
    set_target_properties(\${_mercury_name} PROPERTIES
      IMPORTED_LOCATION "\${_mercury_libs}/libmercury2.so.0"
      IMPORTED_SONAME libmercury2.so.0
      INTERFACE_INCLUDE_DIRECTORIES "\${_mercury}/include"
      INTERFACE_LINK_LIBRARIES "\${_mercury_libs}/$soname$(mpi_flags link | sed 's/^\| \+/;/g')")
  endif()
endforeach()
unset(_mercury)
unset(_mercury_libs)
unset(_mercury_name)
CMAKE
  cat >"$own/lib/cmake/mercury/mercury-config-version.cmake" <<'CMAKE'
set(PACKAGE_VERSION 2.4.1)
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
if(PACKAGE_FIND_VERSION_MAJOR STREQUAL "2" AND NOT PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
CMAKE
}

install_programs() {
  local name
  for name in "${PROGRAMS[@]}"; do
    install -m 755 "$built/$name" "$tmp/$name"
    [[ -n $debug ]] || strip "$tmp/$name"
    install -m 755 "$tmp/$name" "$stage/bin/"
    NAME=${name//-/\\\\-} TITLE=${name^^} fill "man/$name.1.in" "$stage/share/man/man1/$name.1"
  done
}

# Writes a file of packaging/ with the values for this installation.
fill() { # template, file
  sed -e "s|@NAME@|${NAME:-}|g" -e "s|@TITLE@|${TITLE:-}|g" -e "s|@VERSION@|$version|g" -e "s|@MPI@|$built_for|g" \
    -e "s|@PREFIX@|$prefix|g" -e "s|@SONAME@|$soname|g" -e "s|@FACES@|$names|g" -e "s|@NATIVE@|$native|g" \
    -e "s|@MPICC@|$(command -v "$wrapper")|g" -e "s|@MPICXX@|$(command -v "$MPICXX")|g" \
    -e "s|@MPIFORT@|$(command -v "$MPIFORT")|g" "packaging/$1" >"$2"
}

# Prints the compile or link flags that the MPI's compiler wrapper adds.
mpi_flags() {
  if [[ $MPI == openmpi ]]; then
    "$wrapper" "--showme:$1"
  elif [[ $1 == compile ]]; then
    "$wrapper" -show | tr ' ' '\n' | grep -E '^-(I|D)' | xargs
  else
    "$wrapper" -show | tr ' ' '\n' | grep -E '^-(L|l|Wl)' | xargs
  fi
}

# Prints the system libraries that a static Rust library needs.
native_libs() {
  rustc --crate-type staticlib --print native-static-libs -o "$tmp/empty.a" - </dev/null 2>&1 |
    sed -n 's/.*native-static-libs: //p'
}

write_pc() { # name, link name, subdirectory of the headers
  cat >"$lib/pkgconfig/$1.pc" <<PC
prefix=\${pcfiledir}/../..
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: $1
Description: Portolan, one-sided communication for MPI programs, built for $built_for
Version: $version
Cflags: -I\${includedir}${3:-} $(mpi_flags compile)
Libs: -L\${libdir} -Wl,-rpath,\${libdir} -l$2 $(mpi_flags link)
Libs.private: $native
PC
}

# Moves the files to the prefix. Each replaces its predecessor by a rename, because programs may be
# starting.
deploy() {
  local target=${DESTDIR:-}$prefix file new
  (cd "$stage" && find . ! -type d | sed 's|^\./||' | sort >"$tmp/files" && mv "$tmp/files" share/portolan/files)
  while read -r file; do
    new=$target/${file%/*}/.portolan.$$
    mkdir -p "${new%/*}"
    cp -a "$stage/$file" "$new"
    mv -fT "$new" "$target/$file"
  done < <(cat "$stage/share/portolan/files" && echo share/portolan/files)
}

names=$(printf '%s\n' "${FACES[@]}" | cut -d ' ' -f 1 | xargs)
native=$(native_libs)
install_libraries
install_mercury2
install_programs
cp -R include/. "$stage/include/"
native=${native// /;} fill cmake/PortolanConfig.cmake.in "$lib/cmake/Portolan/PortolanConfig.cmake"
fill cmake/PortolanConfigVersion.cmake.in "$lib/cmake/Portolan/PortolanConfigVersion.cmake"
fill modulefile.in "$stage/share/modulefiles/portolan/$version-$built_for"
for face in "${FACES[@]}"; do
  read -r name link _ <<<"$face"
  if [[ $name == mercury2 ]]; then write_pc "$name" "$link" /mercury2; else write_pc "$name" "$link"; fi
done
write_pc portolan portolan
[[ ! -e $lib/libmercury2.so.0 ]] || install_mercury_prefix
touch -r "$tmp/start" "$lib/pkgconfig/portolan.pc" # mpirun.sh compares the sources with it
deploy
echo "install: Portolan $version for $built_for is in ${DESTDIR:-}$prefix"
