#!/usr/bin/env bash
# Compiles the hot loop of the Perl worker into `arch`, where lib/Parkade/Compiled.pm finds it: build.sh [PERL]. Flags for the compiler: CFLAGS.
# Without a C compiler or Perl's headers it says so, and succeeds: the worker then runs in Perl alone.
set -euo pipefail

perl=${1:-perl}
cd "$(dirname "$0")"
gives_up() { echo "the compiled loop of the Perl worker is not built: $1; the worker runs without it, slower"; exit 0; }
command -v "$perl" > /dev/null || gives_up "there is no $perl"
command -v make > /dev/null || gives_up "there is no make"
"$perl" -MExtUtils::MakeMaker -MExtUtils::CBuilder -e 1 2> /dev/null || gives_up "$perl lacks ExtUtils::MakeMaker or ExtUtils::CBuilder"
target=arch/$("$perl" -MConfig -e 'print "$Config{version}/$Config{archname}"')/auto/Parkade
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cp -r Makefile.PL Parkade.xs lib "$folder/"
if (cd "$folder" && "$perl" Makefile.PL ${CFLAGS:+OPTIMIZE="$CFLAGS"} && make dynamic) > "$folder/log" 2>&1 \
  && built=$(ls "$folder"/blib/arch/auto/Parkade/Parkade.*[^s] 2> /dev/null); then
  mkdir -p "$target"
  mv "$built" "$target/"
elif why=$(grep "^The part in C" "$folder/log"); then
  rm -rf "$target"
  why=${why#The part in C }
  gives_up "it ${why%%:*}"
else
  cat "$folder/log" >&2
  exit 1
fi
