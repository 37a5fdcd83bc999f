#!/usr/bin/env bash
# Installs the programs that some black-box tests need: nginx and Chromium. Needs root, or sudo without a password.
# It names programs that are not available; their tests are skipped. Safe to run again: existing programs are kept.
set -uo pipefail
source "$(dirname "$0")/../bench/apt.sh"

runs nginx || [ -x /usr/sbin/nginx ] || apt_package nginx
runs chromium || apt_package chromium
[ "${#missing[@]}" = 0 ] || echo "Tests that need ${missing[*]} are skipped."
