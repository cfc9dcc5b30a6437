#!/bin/sh
# comment-verdicts.sh: comments on merged pull requests what their changes did, once a verdict is known, and keeps that one
# comment current. For a scheduled job of GitHub, Gitea or Forgejo (GITHUB_TOKEN) or GitLab (GITLAB_TOKEN, which may comment).
# Needs prompt-signals, curl, jq and sha256sum on the PATH, PROMPT_SIGNALS_URL and PROMPT_SIGNALS_KEY.
set -eu
if [ -n "${GITLAB_CI:-}" ]; then
  home="$CI_PROJECT_URL/-/merge_requests/"
  api="$CI_API_V4_URL/projects/$CI_PROJECT_ID/merge_requests"
  header="PRIVATE-TOKEN: $GITLAB_TOKEN"
  update=PUT
  comments_of() { echo "$api/$1/notes"; }
  comment() { echo "$api/$1/notes/$2"; }
else
  home="$GITHUB_SERVER_URL/$GITHUB_REPOSITORY/pull"
  api="$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/issues"
  header="Authorization: Bearer $GITHUB_TOKEN"
  update=PATCH
  comments_of() { echo "$api/$1/comments"; }
  comment() { echo "$api/comments/$2"; }
fi

# The token is not an argument: other users could see it.
call() {
  printf 'header = "%s"\n' "$header" |
    curl --config - --fail --silent --show-error --header 'Content-Type: application/json' "$@"
}

report() { prompt-signals report --url "$PROMPT_SIGNALS_URL" --since 30d "$@"; }

# Nobody without the key can write the mark of a pull request in advance: a comment of somebody else would be overwritten.
mark_of() { printf '<!-- prompt-signals %s -->' "$(printf '%s %s' "$PROMPT_SIGNALS_KEY" "$1" | sha256sum | cut -d ' ' -f 1)"; }

# The comment with the mark as JSON, or nothing.
find_comment() {
  page=1
  while found=$(call "$(comments_of "$1")?per_page=100&page=$page"); do
    printf %s "$found" | jq --compact-output --arg mark "$2" 'map(select(.body | startswith($mark)))[0] // empty' | grep . && return
    [ "$(printf %s "$found" | jq length)" -eq 100 ] || return 0
    page=$((page + 1))
  done
  return 1
}

# Every step says whether it failed: the shell does not stop within a condition.
update_comment() {
  mark=$(mark_of "$2")
  text=$(report --pr "$2" --format markdown) || return
  body=$(printf '%s\n%s' "$mark" "$text")
  known=$(find_comment "$1" "$mark") || return
  [ "$(printf %s "$known" | jq --raw-output .body)" != "$body" ] || return 0
  id=$(printf %s "$known" | jq --raw-output .id)
  [ -n "$id" ] || [ "$3" != undecided ] || return 0
  if [ -n "$id" ]; then set -- --request "$update" "$(comment "$1" "$id")"; else set -- "$(comments_of "$1")"; fi
  call --output /dev/null --data "$(jq --null-input --arg body "$body" '{ body: $body }')" "$@"
}

changes=$(report --format json)
printf %s "$changes" |
  jq --raw-output --arg home "$home" '(.verdict // "undecided") as $verdict | .change.pr_url // ""
    | select(ascii_downcase | startswith($home | ascii_downcase))
    | "\(.[($home | length):] | capture("^(s?/)?(?<number>[1-9][0-9]*)$").number) \(.) \($verdict)"' |
  sort -u | {
    status=0
    while read -r number url verdict; do
      update_comment "$number" "$url" "$verdict" || { echo "$url could not be commented on" >&2 && status=1; }
    done
    exit "$status"
  }
