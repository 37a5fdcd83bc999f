#!/usr/bin/env bash
# Fetches products in Perl that Debian packages, with what they need, for tests/test_products.py, and unpacks them into target/products: nothing is
# installed, and no service is set up. What is not available is named; its tests are skipped. Safe to run again: existing products are kept.
set -uo pipefail
cd "$(dirname "$0")/.."
products=(pinto)

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { echo "Products in Perl need apt-get and dpkg-deb."; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for product in "${products[@]}"; do
  [ -d "target/products/$product" ] && continue
  mkdir -p "$work/$product/unpacked"
  # The names of the packages that it would take to install it here.
  needed=$(apt-get install --simulate --no-install-recommends "$product" 2>/dev/null | awk '/^Inst/ { print $2 }')
  if [ -n "$needed" ] && (cd "$work/$product" && apt-get download -qq -o APT::Sandbox::User=root $needed) >/dev/null 2>&1; then
    for package in "$work/$product"/*.deb; do dpkg-deb --extract "$package" "$work/$product/unpacked"; done
    mkdir -p target/products
    mv "$work/$product/unpacked" "target/products/$product"
  else
    echo "  cannot be had: $product"
  fi
done
