#!/bin/sh
# get-binary.sh FOLDER: puts the binary prompt-signals into FOLDER, for a pipeline.
# With PROMPT_SIGNALS_BINARY_URL it downloads the binary, and checks it against PROMPT_SIGNALS_BINARY_SHA256.
# Else it builds the binary from the source that this script is in, which needs Bun.
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
if [ -n "${PROMPT_SIGNALS_BINARY_URL:-}" ]; then
  curl --fail --silent --show-error --location --output "$folder/prompt-signals" "$PROMPT_SIGNALS_BINARY_URL"
  echo "${PROMPT_SIGNALS_BINARY_SHA256:?is needed with PROMPT_SIGNALS_BINARY_URL}  $folder/prompt-signals" |
    sha256sum --check --status || { echo 'the downloaded binary has another SHA-256' >&2; rm "$folder/prompt-signals"; exit 1; }
else
  cd "$(dirname "$0")/.."
  bun run --silent build >&2
  cp dist/prompt-signals "$folder/prompt-signals"
fi
chmod 755 "$folder/prompt-signals"
