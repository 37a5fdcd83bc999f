# Installs Debian packages for scripts that continue without those that are not available; to be sourced. `missing` collects the latter.
missing=()
lacks() { echo "  cannot be had: $1 ($2)"; missing+=("$1"); }
runs() { command -v "$1" >/dev/null 2>&1; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; elif runs sudo; then sudo -n "$@"; else return 1; fi; }

apt_package() { # apt_package PACKAGE: one at a time, so that one missing package costs one peer only
  dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed' && return
  if ! runs apt-get; then lacks "$1" "no apt-get here"; return; fi
  if [ -z "${apt_updated:-}" ]; then as_root apt-get update -qq >/dev/null 2>&1; apt_updated=1; fi
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" \
    >/dev/null 2>&1 || lacks "$1" "apt-get install failed"
}

# While packages are installed, their services must not start: nginx would take port 80. See invoke-rc.d(8).
policy=/usr/sbin/policy-rc.d
if runs apt-get && [ ! -e $policy ] && printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null 2>&1; then
  as_root chmod +x $policy
  trap 'as_root rm -f $policy' EXIT
fi
