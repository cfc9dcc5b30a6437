#!/usr/bin/env bash
# Builds the image from the Dockerfile and runs it, without a container engine or a registry: with Debian's buildah, and
# base images made here of Debian's packages under the names that the Dockerfile uses. Needs root, apt-get and npm's bun.
#   apt-get install --no-install-recommends buildah debootstrap
#   deploy/try-image.sh [FOLDER]      keeps its work in FOLDER, by default a temporary one
set -euo pipefail
cd "$(dirname "$0")/.."

work=$(realpath "${1:-$(mktemp --directory)}")
mkdir -p "$work"
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot BUILDAH_FORMAT=docker
buildah() { command buildah --root "$work/storage" --runroot "$work/run" "$@"; }
say() { printf '\n== %s\n' "$*"; }

make_image() { # NAME ROOT CONFIG …
  local name=$1 root=$2 container
  shift 2
  container=$(buildah from scratch)
  buildah copy --quiet "$container" "$root" / >/dev/null
  buildah config "$@" "$container"
  buildah commit --quiet --rm "$container" "$name" >/dev/null
}

say 'base image of the build: Debian and Bun'
builder=$work/builder
if [ ! -d "$builder" ]; then
  debootstrap --variant=minbase --include=ca-certificates bookworm "$builder.new" >"$work/debootstrap.log"
  install -m 755 "$(bun -p process.execPath)" "$builder.new/usr/local/bin/bun"
  mv "$builder.new" "$builder"
fi
# It trusts whom this machine trusts, a proxy's certificate perhaps.
certificates=/etc/ssl/certs/ca-certificates.crt
cp "$certificates" "$builder$certificates"
make_image docker.io/oven/bun:1.4.4 "$builder" --env "NODE_EXTRA_CA_CERTS=$certificates"

say 'base image of the result: the C library and a user without rights, no shell'
runtime=$work/runtime
if [ ! -d "$runtime" ]; then
  mkdir -p "$work/packages" "$runtime.new"/{tmp,etc,home/nonroot}
  (cd "$work/packages" && apt-get download libc6 libgcc-s1 2>/dev/null)
  for package in "$work"/packages/*.deb; do dpkg-deb --extract "$package" "$runtime.new"; done
  chmod 1777 "$runtime.new/tmp"
  chown 65532:65532 "$runtime.new/home/nonroot"
  echo 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' >"$runtime.new/etc/passwd"
  echo 'nonroot:x:65532:' >"$runtime.new/etc/group"
  mv "$runtime.new" "$runtime"
fi
make_image gcr.io/distroless/cc-debian12:nonroot "$runtime" --user 65532 --workingdir /home/nonroot

say 'the image'
buildah build --pull-never --quiet --tag prompt-signals .
buildah inspect --type image --format '{{.Docker.Config.User}} {{.Docker.Config.Entrypoint}} {{.Docker.Config.Cmd}} {{.Docker.Config.Env}} {{.Docker.Config.Healthcheck}}' prompt-signals

say 'serves, as its user and with its settings'
container=$(buildah from --pull-never prompt-signals)
log=$work/log
buildah run --env PORT=0 --env REQUIRE_DATABASE=off "$container" -- /prompt-signals serve --demo >"$log" 2>&1 &
running=$!
url=''
for _ in $(seq 300); do
  url=$(sed -n 's/.*"url":"\([^"]*\)".*"serving".*/\1/p' "$log")
  grep -q Documentation "$log" && break
  kill -0 "$running" || { cat "$log"; exit 1; }
  sleep 0.1
done
pid=$(pgrep -f '^/prompt-signals serve --demo' --newest)
echo "user $(awk '/^Uid/ { print $2 }' "/proc/$pid/status")"
[ "$(awk '/^Uid/ { print $2 }' "/proc/$pid/status")" = 65532 ]
port=${url##*:}
buildah run --env "PORT=$port" "$container" -- /prompt-signals healthcheck
buildah run --env "PORT=$port" "$container" -- /prompt-signals healthcheck --live
key=$(grep -om1 'psk_[0-9A-Za-z]*' "$log")
prompt=$(grep -om1 'pmt_[0-9A-Za-z]*' "$log")
call() { curl --silent --fail-with-body --header "Authorization: Bearer $key" "$@"; echo; }
call "http://127.0.0.1:$port/api/v1/prompts/$prompt/history?limit=1"
call --json '{"value":"positive"}' "http://127.0.0.1:$port/api/v1/prompts/$prompt/signals"
buildah run "$container" -- /prompt-signals orgs list
link=$(buildah run --env "PORT=$port" "$container" -- /prompt-signals console --org Demo --json | sed 's/.*"link":"\([^"]*\)".*/\1/')
curl --silent --fail --output /dev/null "${link%%#*}"
echo "console ${link%%#*}"

say 'stops when it is told to'
kill -TERM "$pid"
wait "$running"
tail -n 1 "$log"
! buildah run "$container" -- /bin/sh -c true 2>/dev/null || { echo 'there is a shell in the image'; exit 1; }
buildah rm "$container" >/dev/null
say done
