#!/usr/bin/env bash
# Fetches the sources of Perl modules whose own tests run through Parkade (test_perl_suites.py), as Debian packages them, into target/suites.
# What is not available is named; its tests are skipped. Safe to run again: existing sources are kept.
set -uo pipefail
cd "$(dirname "$0")/.."
suites=$PWD/target/suites
packages=(libplack-perl libdancer2-perl)
# A later release that is in the same place, if the source of Debian 12's own is not. A suite brings its module along.
declare -A newer=([libdancer2-perl]=1.1.2+dfsg)

command -v apt-get >/dev/null && ls /etc/apt/sources.list.d/*.sources >/dev/null 2>&1 || { echo "Sources of Perl modules need apt-get."; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$suites" "$work/parts" "$work/lists/partial"
for file in /etc/apt/sources.list.d/*.sources; do
  sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/parts/$(basename "$file")"
done

options=(-qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/parts" -o Dir::State::lists="$work/lists" -o APT::Sandbox::User=root)

fetch_later() {
  rm -rf ./*
  apt-get "${options[@]}" --print-uris source "$1" | sed -n "s|^'\\(.*\\)/[^/]*\\.orig\\.tar.*|\\1|p" | head -1 >folder
  /usr/lib/apt/apt-helper download-file "$(cat folder)/$1_$2.orig.tar.xz" later.orig.tar.xz
  tar xf later.orig.tar.xz && mv ./*/ unpacked
}

for package in "${packages[@]}"; do
  [ -d "$suites/$package" ] && continue
  [ -n "$(ls "$work/lists"/*Sources* 2>/dev/null)" ] || apt-get "${options[@]}" update >/dev/null 2>&1
  mkdir -p "$work/$package"
  later=${newer[$package]:-}
  if (cd "$work/$package" && apt-get "${options[@]}" source --download-only "$package" && tar xf ./*.orig.tar.* && mv ./*/ unpacked) >/dev/null 2>&1 ||
    { [ -n "$later" ] && (cd "$work/$package" && fetch_later "$package" "$later") >/dev/null 2>&1; }; then
    mv "$work/$package/unpacked" "$suites/$package"
  else
    echo "  cannot be had: the source of $package"
  fi
done
