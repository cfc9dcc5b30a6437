#!/bin/sh
# install.sh VERSION SOURCE: installs the binary and the systemd unit of a release, or updates them. As root.
# SOURCE is the folder or the URL that has the files of the release: without network, a folder. Verify who made them by the
# signature of SHA256SUMS; this script checks that they are complete. DESTDIR=/folder installs below it, for a package.
set -eu
version=${1:?usage: install.sh VERSION SOURCE}
source=${2:?usage: install.sh VERSION SOURCE}
case $(uname -m) in
  x86_64) machine=x64 ;;
  aarch64 | arm64) machine=arm64 ;;
  *) echo "There is no binary for $(uname -m)." >&2; exit 1 ;;
esac
binary=prompt-signals-$version-linux-$machine
unit=prompt-signals.service
root=${DESTDIR:-}
user=prompt-signals

case $source in
  http://* | https://*)
    command -v curl >/dev/null || { echo 'A URL needs curl: install it, or give a folder.' >&2; exit 1; } ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
for file in SHA256SUMS "$binary" "$unit"; do
  case $source in
    http://* | https://*) curl --fail --silent --show-error --location --output "$work/$file" "$source/$file" ;;
    *) cp "$source/$file" "$work/$file" ;;
  esac
done
for file in "$binary" "$unit"; do
  (cd "$work" && grep "  $file\$" SHA256SUMS | sha256sum -c >/dev/null 2>&1) || {
    echo "$file is not the one that SHA256SUMS names. Nothing was installed." >&2
    exit 1
  }
done

mkdir -p "$root/usr/local/bin" "$root/etc/systemd/system"
# Under its name only once it is complete: a service may be starting.
install -m 755 "$work/$binary" "$root/usr/local/bin/.prompt-signals.new"
mv "$root/usr/local/bin/.prompt-signals.new" "$root/usr/local/bin/prompt-signals"
install -m 644 "$work/$unit" "$root/etc/systemd/system/$unit"
[ -z "$root" ] || exit 0

id "$user" >/dev/null 2>&1 || useradd --system --shell /usr/sbin/nologin "$user"
install -d -o "$user" -m 700 /var/lib/prompt-signals
systemctl daemon-reload
case $(systemctl is-active "$unit") in
  # One that keeps failing is activating most of the time.
  active | activating | reloading) ;;
  *)
    echo 'Settings: /etc/prompt-signals.env. Without DATABASE_URL, create the database once:'
    echo "  sudo -u $user DATA_DIR=/var/lib/prompt-signals /usr/local/bin/prompt-signals init"
    echo 'Then: systemctl enable --now prompt-signals'
    exit 0
    ;;
esac

# Asks with the environment of the process: settings may come from the unit too.
answers() {
  pid=$(systemctl show --property MainPID --value "$unit")
  xargs -0 sh -c 'exec env -i "$@" /usr/local/bin/prompt-signals healthcheck --live' sh \
    >/dev/null 2>&1 <"/proc/$pid/environ"
}
systemctl restart "$unit"
# An embedded database is backed up and migrated at the start, which may take minutes.
tries=300
until answers; do
  tries=$((tries - 1))
  if [ "$tries" = 0 ] || ! systemctl is-active --quiet "$unit"; then
    echo "$version is installed, but the service does not answer: journalctl -u prompt-signals says why." >&2
    exit 1
  fi
  sleep 1
done
