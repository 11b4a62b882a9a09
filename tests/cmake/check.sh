#!/usr/bin/env bash
# Usage: check.sh DIR PREFIX [MPICC MPICXX MPIFORT]
#
# Configures, builds and installs real CMake projects in DIR against the library in PREFIX, and
# builds a program with the flags of pkg-config. The compiler wrappers are those of the other MPI,
# which the library must refuse. Runs no ranks. Prints one line per case, and at the end
# `N passed, N failed`. MPIFORT of the environment is the library's, or empty without Fortran.
set -euo pipefail
dir=$1 prefix=$2 other=("${@:3}") here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
passed=0 failed=0
unset LD_LIBRARY_PATH CC CXX FC MPI_HOME
rm -rf "$dir"
mkdir -p "$dir"

project() { # name, languages, source, arguments of find_package, target ...
  mkdir -p "$dir/$1"
  cat >"$dir/$1/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.13)
project($1 $2)
set(CMAKE_INSTALL_RPATH_USE_LINK_PATH ON)
find_package(Portolan 0.1 $4)
if(NOT Portolan_FOUND)
  message(STATUS "without Portolan")
  return()
endif()
add_executable($1 "$here/$3")
target_link_libraries($1 PRIVATE ${*:5})
install(TARGETS $1 RUNTIME DESTINATION bin)
CMAKE
}

configure() { # project, more arguments ...
  cmake -S "$dir/$1" -B "$dir/$1/build" -DCMAKE_PREFIX_PATH="$prefix" "${@:2}"
}

# The program must find the library without LD_LIBRARY_PATH, also after its installation.
finds_library() { # program
  ldd "$1"
  ldd "$1" | grep "libportolan.so.0 => /" >/dev/null
}
works() { # project, more arguments ...
  configure "$@" && cmake --build "$dir/$1/build" && finds_library "$dir/$1/build/$1" &&
    cmake --install "$dir/$1/build" --prefix "$dir/$1/installed" && finds_library "$dir/$1/installed/bin/$1"
}
# The archive leaves no shared library to find.
works_static() { # project
  configure "$1" && cmake --build "$dir/$1/build" && ! finds_library "$dir/$1/build/$1"
}
# The C files of a project get the same flags as those of a project in C only.
has_flags_of() { # project in C only, other project
  works "$2" && diff <(grep ^C_ "$dir/$1/build/CMakeFiles/$1.dir/flags.make") \
    <(grep ^C_ "$dir/$2/build/CMakeFiles/$2.dir/flags.make")
}
refuses() { # text, project, more arguments ...
  ! configure "${@:2}" >"$dir/refused" 2>&1 || { cat "$dir/refused" && echo "not refused" && return 1; }
  cat "$dir/refused"
  tr -s ' \n' ' ' <"$dir/refused" | grep -q "$1"
}
does_without() { # project, more arguments ...
  configure "$@" >"$dir/configured" 2>&1 || { cat "$dir/configured" && return 1; }
  cat "$dir/configured"
  grep -q 'without Portolan' "$dir/configured"
}
by_pkg_config() { # source
  local flags
  read -ra flags <<<"$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs armci)"
  gcc "$here/$1" -o "$dir/by-pkg-config" "${flags[@]}" && finds_library "$dir/by-pkg-config"
}
# Thallium and other projects link the imported target of the file for pkg-config.
by_imported_target() { # module, source
  mkdir -p "$dir/imported"
  cat >"$dir/imported/CMakeLists.txt" <<CMAKE
cmake_minimum_required(VERSION 3.13)
project(imported C)
find_package(PkgConfig REQUIRED)
pkg_check_modules(module REQUIRED IMPORTED_TARGET $1)
add_executable(imported "$here/$2")
target_link_libraries(imported PRIVATE PkgConfig::module)
CMAKE
  PKG_CONFIG_PATH=$prefix/lib/mercury-2.4/lib/pkgconfig cmake -S "$dir/imported" -B "$dir/imported/build" &&
    cmake --build "$dir/imported/build" && finds_library "$dir/imported/build/imported"
}

check() { # name, command ...
  if "${@:2}" >"$dir/log" 2>&1; then
    echo "ok   $1"
    passed=$((passed + 1))
  else
    echo "FAIL $1"
    tail -n 30 "$dir/log" | sed 's/^/     | /'
    failed=$((failed + 1))
  fi
}

project c C armci.c REQUIRED Portolan::armci
check "a project in C" works c
project cxx CXX armci.cpp REQUIRED Portolan::armci
check "a project in C++ only" works cxx
project static C armci.c REQUIRED Portolan::portolan_static
check "the archive" works_static static
for face in armci x10 lapi compose mercury mercury2 na; do
  project "$face" C "$face.c" "REQUIRED COMPONENTS $face" "Portolan::$face"
  check "the component $face" works "$face"
done
project unknown C armci.c "REQUIRED COMPONENTS armic" Portolan::armci
check "an unknown component" refuses "no component 'armic'" unknown
project none NONE armci.c REQUIRED Portolan::armci
check "a project without a language" refuses "needs the language C, CXX or Fortran" none
if [[ -n ${MPIFORT:-} ]]; then
  project fortran Fortran lapi.f90 REQUIRED Portolan::lapi
  check "a project in Fortran only" works fortran
  project both "C Fortran" armci.c REQUIRED Portolan::armci
  check "a project in C and Fortran" has_flags_of c both
  project mixed "C CXX Fortran" lapi.f90 REQUIRED Portolan::lapi
  check "a program in Fortran of a project in three languages" works mixed
fi
if ((${#other[@]})); then
  refusal='is built for .*but the project uses another MPI for .*CMAKE_PREFIX_PATH'
  project other C armci.c REQUIRED Portolan::armci
  check "another MPI" refuses "$refusal" other -DMPI_C_COMPILER="${other[0]}"
  check "and then the library's" works other --fresh
  check "another MPI as the compiler" refuses "$refusal" other --fresh -DCMAKE_C_COMPILER="${other[0]}" \
    -DMPI_C_COMPILER="${other[0]}"
  check "another MPI as the compiler only" refuses "CMAKE_C_COMPILER is .*${other[0]##*/}" other --fresh \
    -DCMAKE_C_COMPILER="${other[0]}"
  project other-cxx CXX armci.cpp REQUIRED Portolan::armci
  check "another MPI in C++ only" refuses "$refusal" other-cxx -DMPI_CXX_COMPILER="${other[1]}"
  project optional C armci.c QUIET Portolan::armci
  check "another MPI, and Portolan is optional" does_without optional -DMPI_C_COMPILER="${other[0]}"
  if [[ -n ${MPIFORT:-} ]]; then
    project other-fortran Fortran lapi.f90 REQUIRED Portolan::lapi
    check "another MPI in Fortran only" refuses "$refusal" other-fortran -DMPI_Fortran_COMPILER="${other[2]}"
    project partly "C Fortran" lapi.f90 REQUIRED Portolan::lapi
    check "another MPI in Fortran besides C" refuses "$refusal" partly -DMPI_Fortran_COMPILER="${other[2]}"
  fi
fi
if command -v pkg-config >/dev/null; then
  check "pkg-config" by_pkg_config armci.c
  check "pkg-config's imported target" by_imported_target mercury mercury2.c
fi
echo "$passed passed, $failed failed"
((failed == 0))
