#!/bin/sh
# Makes a sample repository to try sync on, always the same one, in a folder that is not there yet:
#   scripts/sample-repository.sh DIR
# DIR/clone is a clone of acme/prompts, and DIR/remote.git is the bare repository that it pushes to.
set -eu

folder=${1:?usage: sample-repository.sh DIR}
mkdir "$folder"
cd "$folder"

# No configuration of the caller may change the hashes.
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 LC_ALL=C TZ=UTC
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE

# Time passes only here: an hour with every commit, from 1 September 2026, 9:00 on.
now=1788253200
as() { # as NAME EMAIL COMMAND…
  GIT_AUTHOR_NAME=$1 GIT_AUTHOR_EMAIL=$2
  GIT_COMMITTER_NAME=${committer_name:-$1} GIT_COMMITTER_EMAIL=${committer_email:-$2}
  shift 2
  now=$((now + 3600))
  GIT_AUTHOR_DATE="$now +0000" GIT_COMMITTER_DATE="$now +0000"
  export GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL GIT_COMMITTER_DATE
  "$@"
}
ada() { as 'Ada Lovelace' ada@example.com "$@"; }
grace() { as 'Grace Hopper' grace@example.com "$@"; }
# As GitHub commits for somebody who presses a button.
on_github() {
  committer_name=GitHub committer_email=noreply@github.com
  "$@"
  unset committer_name committer_email
}
write() { mkdir -p "$(dirname "$1")" && printf '%s\n' "$2" >"$1" && git add "$1"; }

git init --quiet --bare --initial-branch=main remote.git
git init --quiet --initial-branch=main clone
cd clone
git remote add origin https://github.com/acme/prompts.git
git remote set-url --push origin ../remote.git

# Two commits on the branch itself.
write prompts/greeting.md 'Greet the customer.'
write prompts/farewell.md 'Say goodbye.'
write README.md 'Our prompts.'
ada git commit --quiet --message 'Add greeting and farewell'
write prompts/greeting.md 'Greet the customer by name.'
grace git commit --quiet --message 'Greet by name'

# Pull request 1, merged with a merge commit. Its branch was brought up to date with main before.
git switch --quiet --create warmer-greeting
write prompts/greeting.md 'Greet the customer warmly, by name.'
grace git commit --quiet --message 'Warmer greeting'
git switch --quiet main
write prompts/farewell.md 'Say goodbye, and thank the customer.'
ada git commit --quiet --message 'Thank the customer'
git switch --quiet warmer-greeting
grace git merge --quiet --no-edit main
git switch --quiet main
on_github ada git merge --quiet --no-ff warmer-greeting \
  --message 'Merge pull request #1 from acme/warmer-greeting' --message 'Warmer greeting'

# Pull request 2, squashed.
git switch --quiet --create shorter
write prompts/greeting.md 'Greet warmly, by name.'
grace git commit --quiet --message 'Shorter'
write prompts/farewell.md 'Say goodbye and thanks.'
grace git commit --quiet --message 'Shorter still'
git switch --quiet main
git merge --quiet --squash shorter >/dev/null
on_github grace git commit --quiet --message 'Shorter prompts (#2)'

# Pull request 3, rebased: its commits look like any others.
git switch --quiet --create polite
write prompts/farewell.md 'Say goodbye and thanks, politely.'
grace git commit --quiet --message 'Be polite'
git switch --quiet main
write README.md 'The prompts of our support.'
ada git commit --quiet --message 'Say whose prompts these are'
git switch --quiet polite
on_github ada git rebase --quiet main
git switch --quiet main
git merge --quiet --ff-only polite

# A rename, and a change after it.
git mv prompts/greeting.md prompts/welcome.md
ada git commit --quiet --message 'Call it welcome'
write prompts/welcome.md 'Welcome the customer warmly, by name.'
ada git commit --quiet --message 'Welcome'
git push --quiet origin main

# A commit that a force push takes back.
write prompts/welcome.md 'WELCOME!!!'
grace git commit --quiet --message 'Louder'
git push --quiet origin main
git reset --quiet --hard HEAD~1
write prompts/refund.md 'Explain the refund.'
ada git commit --quiet --message 'Add refund'
git push --quiet --force origin main

# Work of two people at once: one pulls before pushing, which makes a merge that is no pull request's.
git switch --quiet --create grace-clone HEAD~1
write prompts/farewell.md 'Say goodbye and thanks, politely and briefly.'
grace git commit --quiet --message 'Be brief'
grace git merge --quiet --message "Merge branch 'main' of https://github.com/acme/prompts" main
git switch --quiet main
git merge --quiet --ff-only grace-clone
git push --quiet origin main
git branch --quiet --delete --force warmer-greeting shorter polite grace-clone
