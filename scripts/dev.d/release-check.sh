#!/usr/bin/env bash
# Usage: scripts/dev release-check [--mpi M] [--since REF] [--install]
#
# Makes the checks before a release that are not part of the tests:
#
#   changelog   CHANGELOG.md has a section for the version of Cargo.toml, or `Unreleased`
#   publish     cargo publish --dry-run of the workspace succeeds without warnings, and the
#               packed crates build
#   contents    the package contains what users build and run, and no test data
#   items       the public Rust interface is the one that public-api.txt lists
#               (scripts/dev public-api, with cargo-public-api)
#   interface   lists what is new, changed or removed in that list since the last release
#   semver      the version of Cargo.toml permits these changes, by cargo-semver-checks
#   symbols     every C call of the last release's shared library is still in this one
#
# The last release is the newest tag v*, or REF. If there is none, `symbols` only writes its list,
# and `interface` and `semver` are skipped. A check whose tool is missing is skipped, with a
# message. The output is in target/release-check, for the review of the release. The last line is
# `N passed, N failed`.
#
#   --mpi M      the MPI to build with, Debian's MPICH by default
#   --since REF  the commit to compare with
#   --install    install cargo-public-api from crates.io into target/tools (it needs a nightly
#                toolchain in addition to the stable one)
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../env.sh"

mpi=$(default_mpi) since='' install=''
while (($#)); do
  case $1 in
    --mpi) needs_value "$@" && mpi=$2 && shift 2 ;;
    --since) needs_value "$@" && since=$2 && shift 2 ;;
    --install) install=1 && shift ;;
    -h | --help) usage && exit ;;
    *) die "unknown argument '$1', see --help" ;;
  esac
done
complete_mpi "$mpi"
cd "$ROOT"
export CARGO_TERM_COLOR=never PATH=$ROOT/target/tools/bin:$PATH
out=$ROOT/target/release-check
mkdir -p "$out"
work=$(mktemp -d)
trap 'git worktree remove --force "$work/old" 2>/dev/null || true; rm -rf "$work"' EXIT
if [[ -z $since ]]; then since=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null || true); fi
version=$(cargo pkgid -p portolan) && version=${version##*[#@]}

passed=0 failed=0
ok() { passed=$((passed + 1)) && echo "ok   $1"; }
bad() { # check, why, file to show
  failed=$((failed + 1))
  echo "FAIL $1: $2"
  if [[ -n ${3:-} ]]; then tail -n 20 "$3" | cut -c1-200 | sed 's/^/     | /'; fi
}

changelog() {
  if grep -qE "^## (\[?$version\b|Unreleased)" CHANGELOG.md; then
    ok changelog
  else
    bad changelog "no section for $version and none called Unreleased"
  fi
}

# --dry-run packs the crates, builds them and stops; it uploads nothing.
publish() {
  local log=$out/publish.log
  if ! cargo publish --workspace --dry-run --allow-dirty >"$log" 2>&1; then
    bad publish "cargo publish --workspace --dry-run fails" "$log"
  elif grep -E '^warning' "$log" | grep -v 'aborting upload due to dry run' >"$work/warnings"; then
    bad publish "it warns" "$work/warnings"
  else
    ok "publish ($(sed -n 's/^ *Packaged //p' "$log"))"
  fi
}

contents() {
  local strange
  cargo package --list -p portolan --allow-dirty >"$out/contents.txt" 2>/dev/null
  strange=$(grep -E '^(models|fuzz|scripts|target|\.ci)/|^tests/(c|ga|fortran|mpi-bugs)/' "$out/contents.txt" || true)
  if [[ -n $strange ]]; then
    bad contents "it holds ${strange//$'\n'/, }"
  elif ! grep -qx 'src/lib.rs' "$out/contents.txt" || ! grep -qx 'README.md' "$out/contents.txt"; then
    bad contents "the sources or the README are not in it" "$out/contents.txt"
  else
    ok "contents ($(wc -l <"$out/contents.txt") files)"
  fi
}

old_tree() { # checks out the sources of the last release, once
  [[ -d $work/old ]] || git worktree add --quiet --detach "$work/old" "$since"
}

items() {
  local list=public-api.txt log=$out/public-api.txt
  if ! cargo public-api --version >/dev/null 2>&1; then
    echo "skip items: no cargo-public-api (--install gets it); the test public_items compares names"
  elif ! scripts/dev public-api --mpi "$mpi" >"$log" 2>"$log.err"; then
    bad items "scripts/dev public-api fails" "$log.err"
  elif ! diff -U0 "$list" "$log" >"$work/items"; then
    bad items "$list is out of date: scripts/dev public-api >$list" "$work/items"
  else
    ok "items ($(wc -l <"$log"))"
  fi
}

# Lists the changes. The reader decides whether they are allowed.
interface() {
  local list=public-api.txt log=$out/interface.txt
  if [[ -z $since ]]; then
    echo "skip interface: no release to compare with"
  elif ! git show "$since:$list" >"$work/old.txt" 2>/dev/null; then
    echo "skip interface: $since has no $list"
  else
    diff -U0 "$work/old.txt" "$list" | sed '/^@@/d; 1,2d' >"$log" || true
    ok "interface: $(grep -c '^+' "$log" || true) items new, $(grep -c '^-' "$log" || true) gone since $since, in ${log#"$ROOT"/}"
  fi
}

semver() {
  local log=$out/semver.txt
  if ! cargo semver-checks --version >/dev/null 2>&1; then
    echo "skip semver: no cargo-semver-checks"
  elif [[ -z $since ]]; then
    echo "skip semver: no release to compare with"
  elif cargo semver-checks -p portolan --baseline-rev "$since" >"$log" 2>&1; then
    ok "semver: the version permits all changes since $since"
  else
    bad semver "the version does not permit the changes since $since" "$log"
  fi
}

names() { # shared library
  nm -D --defined-only -P "$1" | awk '$2 ~ /[TWDBV]/ { print $1 }' | sort -u
}
symbols() {
  local gone log=$out/symbols.txt
  cargo build --release -p portolan-capi >"$out/build.log" 2>&1 || { bad symbols "it does not build" "$out/build.log" && return; }
  names "$CARGO_TARGET_DIR/release/libportolan.so" >"$log"
  if [[ -z $since ]]; then
    ok "symbols: no release to compare with; the $(wc -l <"$log") names are in ${log#"$ROOT"/}"
    return
  fi
  old_tree
  (cd "$work/old" && CARGO_TARGET_DIR=$work/build cargo build --release --lib) >"$out/build.log" 2>&1 ||
    { bad symbols "$since does not build" "$out/build.log" && return; }
  gone=$(comm -23 <(names "$work/build/release/libportolan.so") "$log")
  if [[ -n $gone ]]; then bad symbols "gone since $since: ${gone//$'\n'/, }"; else ok "symbols: none is gone since $since"; fi
}

if [[ -n $install ]] && ! cargo public-api --version >/dev/null 2>&1; then
  cargo install --locked --root target/tools --target-dir target/tools/build cargo-public-api
fi
changelog
contents
publish
symbols
items
interface
semver
echo "$passed passed, $failed failed"
((failed == 0))
