import { expect, test } from 'bun:test'
import { findLinks, parseRepository, pullRequestUrl, splitRepository } from '../../src/lib/repository_links.ts'

test.each([
  ['Acme/Prompts', 'acme/prompts', 'github.com', 'acme/prompts'],
  ['GitHub.com/Acme/Prompts', 'acme/prompts', 'github.com', 'acme/prompts'],
  ['gitlab.com/Acme/Sub/Prompts', 'gitlab.com/acme/sub/prompts', 'gitlab.com', 'acme/sub/prompts'],
  ['git.example.com/prompts', 'git.example.com/prompts', 'git.example.com', 'prompts'],
  ['gitea:3000/acme', 'gitea:3000/acme', 'gitea:3000', 'acme'],
  ['intranet/acme/prompts', 'intranet/acme/prompts', 'intranet', 'acme/prompts'],
])('%s is %s, at %s', (given, name, host, path) => {
  expect(parseRepository(given)).toBe(name)
  expect(parseRepository(name)).toBe(name)
  expect(splitRepository(name)).toEqual({ host, path })
})

test.each([
  'prompts',
  'github.com/acme',
  'github.com/a/b/c',
  'a/..',
  '../a',
  'a//b',
  'a/b c',
  'https://github.com/a/b',
  '',
])('%p is not a repository', (given) => expect(parseRepository(given)).toBeUndefined())

const [base, head] = ['1'.repeat(40), '2'.repeat(40)]
const none = [null, null]
const linksOf = (repository: string | null, prUrl: string | null = null) => {
  const links = findLinks(repository, prUrl)
  return [links?.commit(head) ?? null, links?.compare(base, head) ?? null]
}

test.each<[string, string, string]>([
  ['acme/p', `https://github.com/acme/p/commit/${head}`, `https://github.com/acme/p/compare/${base}...${head}`],
  [
    'github.acme.com/a/p',
    `https://github.acme.com/a/p/commit/${head}`,
    `https://github.acme.com/a/p/compare/${base}...${head}`,
  ],
  [
    'gitlab.com/a/b/p',
    `https://gitlab.com/a/b/p/-/commit/${head}`,
    `https://gitlab.com/a/b/p/-/compare/${base}...${head}`,
  ],
  ['codeberg.org/a/p', `https://codeberg.org/a/p/commit/${head}`, `https://codeberg.org/a/p/compare/${base}...${head}`],
  [
    'bitbucket.org/a/p',
    `https://bitbucket.org/a/p/commits/${head}`,
    `https://bitbucket.org/a/p/branches/compare/${head}%0D${base}`,
  ],
])('commits and comparisons of %s are linked', (repository, commit, compare) => {
  expect(linksOf(repository)).toEqual([commit, compare])
})

test.each([null, 'git.example.com/acme/p', 'gitea:3000/acme/p', 'gitlab/acme/p', 'bitbucket.example.com/acme/p'])(
  'those of %p are not: a wrong link is worse than none',
  (repository) => expect(linksOf(repository)).toEqual(none),
)

test('nor is what is not a hash', () => {
  expect(findLinks('acme/p')?.commit('../../x')).toBeNull()
  expect(findLinks('acme/p')?.compare(base, 'main')).toBeNull()
})

test.each([
  ['https://git.example.com/a/p/-/merge_requests/3', `https://git.example.com/a/p/-/commit/${head}`],
  ['http://gitea:3000/a/p/pulls/3', `http://gitea:3000/a/p/commit/${head}`],
  [
    'https://git.example.com/projects/A/repos/p/pull-requests/3',
    `https://git.example.com/projects/A/repos/p/commits/${head}`,
  ],
  ['https://git.example.com/a/p/pull/3/', `https://git.example.com/a/p/commit/${head}`],
])('the address %s of a pull request shows where its commits are', (prUrl, commit) => {
  expect(linksOf('git.example.com/a/p', prUrl)[0]).toBe(commit)
})

test.each(['javascript:alert(1)/a/pull/3', 'https://git.example.com/pull/3', 'https://git.example.com/a/p?x=/pull/3'])(
  '%s says nothing about commits',
  (prUrl) => expect(linksOf(null, prUrl)).toEqual(none),
)

test.each([
  ['https://git.example.com/scm/a/p', 'https://git.example.com/projects/a/repos/p/pull-requests/3'],
  ['https://bitbucket.org/a/p', 'https://bitbucket.org/a/p/pull-requests/3'],
])('a pull request of Bitbucket at %s is at %s', (url, expected) => {
  expect(pullRequestUrl(url, 'bitbucket', 3)).toBe(expected)
})
