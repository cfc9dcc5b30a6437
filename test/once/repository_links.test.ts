import { expect, test } from 'bun:test'
import { findLinks, parseRepository, splitRepository } from '../../src/lib/repository_links.ts'

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
  ...['prompts', 'github.com/acme', 'github.com/a/b/c', 'a/..', '../a', 'a//b', 'a/b c', 'https://github.com/a/b', ''],
])('%p is not a repository', (given) => expect(parseRepository(given)).toBeUndefined())

const [base, head] = ['1'.repeat(40), '2'.repeat(40)]
const none = [null, null]
const linksOf = (repository: string | null, prUrl: string | null = null) => {
  const links = findLinks(repository, prUrl)
  return [links?.commit(head) ?? null, links?.compare(base, head) ?? null]
}

const compared = `compare/${base}...${head}`

test.each([
  ['acme/p', 'https://github.com/acme/p', `commit/${head}`, compared],
  ['github.acme.com/a/p', 'https://github.acme.com/a/p', `commit/${head}`, compared],
  ['gitlab.com/a/b/p', 'https://gitlab.com/a/b/p/-', `commit/${head}`, compared],
  ['codeberg.org/a/p', 'https://codeberg.org/a/p', `commit/${head}`, compared],
  ['bitbucket.org/a/p', 'https://bitbucket.org/a/p', `commits/${head}`, `branches/compare/${head}%0D${base}`],
])('commits and comparisons of %s are linked below %s', (repository, below, commit, compare) => {
  expect(linksOf(repository)).toEqual([`${below}/${commit}`, `${below}/${compare}`])
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
  ['https://git.example.com/a/p/-/merge_requests/3', 'https://git.example.com/a/p/-/commit'],
  ['http://gitea:3000/a/p/pulls/3', 'http://gitea:3000/a/p/commit'],
  ['https://git.example.com/projects/A/repos/p/pull-requests/3', 'https://git.example.com/projects/A/repos/p/commits'],
  ['https://git.example.com/a/p/pull/3/', 'https://git.example.com/a/p/commit'],
])('the address %s of a pull request shows that its commits are at %s', (prUrl, commits) => {
  expect(linksOf('git.example.com/a/p', prUrl)[0]).toBe(`${commits}/${head}`)
})

test.each(['javascript:alert(1)/a/pull/3', 'https://git.example.com/pull/3', 'https://git.example.com/a/p?x=/pull/3'])(
  '%s says nothing about commits',
  (prUrl) => expect(linksOf(null, prUrl)).toEqual(none),
)
