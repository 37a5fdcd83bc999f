#!/usr/bin/env bash
# Installs the programs that some black-box tests need: nginx and Chromium. Needs root, or sudo without a password.
# What cannot be had is named, and its tests are skipped. Safe to run again: what is there is left alone.
set -uo pipefail
source "$(dirname "$0")/../bench/apt.sh"

runs nginx || [ -x /usr/sbin/nginx ] || apt_package nginx
runs chromium || apt_package chromium
[ "${#missing[@]}" = 0 ] || echo "Tests that need ${missing[*]} are skipped."
