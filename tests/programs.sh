#!/usr/bin/env bash
# Installs the programs that some black-box tests need: nginx, Chromium, and Perl with its headers and its frameworks. Needs root, or sudo without a password.
# It names programs that are not available; their tests are skipped. Safe to run again: existing programs are kept.
set -uo pipefail
source "$(dirname "$0")/../bench/apt.sh"

runs nginx || [ -x /usr/sbin/nginx ] || apt_package nginx
runs chromium || apt_package chromium
for package in libperl-dev libplack-perl libanyevent-perl libwww-perl libmojolicious-perl libdancer-perl libdancer2-perl \
  libweb-simple-perl libfuture-asyncawait-perl libtest-requires-perl libtest-tcp-perl libtest-fatal-perl libcapture-tiny-perl; do
  apt_package "$package"
done
"$(dirname "$0")/perl_suites.sh"
"$(dirname "$0")/perl_products.sh"
[ "${#missing[@]}" = 0 ] || echo "Tests that need ${missing[*]} are skipped."
