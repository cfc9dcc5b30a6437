import { parseRepository, splitRepository } from '../lib/repository_links.ts'
import { decode, fullSha, type Git, splitAt } from './program.ts'

type TreeEntry = 'file' | 'symbolic link' | 'submodule'

/** Its normalised name, which links are stored by, and its web address. */
type Remote = { name: string; webUrl: string }

/** A branch of a clone. */
export type Repository = Remote & {
  gitDir: string
  branch: string
  tip: string
  /** The number of commits of the clone's own branch that are not on the remote's. */
  unpushed: number
  /** What is on the branch, by path. Paths are bytes, as text of one character per byte. */
  tree: Map<string, TreeEntry>
}

/** Null for the default branch, and for the repository of the remote `origin`. */
type Wanted = { branch: string | null; repository: string | null }

/** Git sets these in a clone that was created with --filter. */
const partialCloneSettings = '^(extensions\\.partialclone|remote\\..*\\.promisor)$'

/** Of the reasons why git opens no repository, those for which the folder is the wrong one. */
const noRepository = /not a git repository|cannot change to/

/** Opens a clone for reading. Throws if parts of its history are missing, and says what to do. */
export async function openRepository(git: Git, folder: string, wanted: Wanted): Promise<Repository> {
  const gitDir = await git.ask(['rev-parse', '--absolute-git-dir'], (complaint) => noRepository.test(complaint))
  if (gitDir === undefined) {
    throw new Error(`${folder} is not a git repository. Name the folder of a clone.`)
  }
  if ((await git.ask(['rev-parse', '--is-shallow-repository'])) === 'true') {
    throw new Error(
      'The clone is shallow, so most of its history is missing. Clone all of it (fetch-depth: 0 for ' +
        'actions/checkout, GIT_DEPTH: 0 on GitLab), or run: git fetch --unshallow',
    )
  }
  if ((await git.ask(['config', '--get-regexp', partialCloneSettings])) !== undefined) {
    throw new Error('The clone is partial, so files are missing in it. Clone without --filter.')
  }
  const remote = await findRemote(git, wanted.repository)
  const branch = wanted.branch ?? (await findDefaultBranch(git))
  const tip = await findTip(git, branch)
  if (tip === undefined) throw new Error(await explainNoTip(git, branch, wanted.branch !== null))
  // The clone may have no branch of that name.
  const unpushed = await git.ask(['rev-list', '--count', `${tip}..${branchPrefix}${branch}`])
  return { ...remote, gitDir, branch, tip, unpushed: Number(unpushed ?? 0), tree: await readTree(git, tip) }
}

async function findRemote(git: Git, given: string | null): Promise<Remote> {
  const url = (await git.ask(['config', '--get', 'remote.origin.url'])) ?? ''
  const origin = parseRemote(url)
  if (given === null) {
    if (origin) return origin
    const problem = url === '' ? 'The clone has no remote origin' : 'The remote origin is not at a host'
    throw new Error(`${problem}. Say which repository it is: --repository https://HOST/OWNER/NAME`)
  }
  // The name of a repository may have a port, which git would take for a folder.
  const remote = parseNamed(given) ?? parseRemote(given)
  if (!remote) throw new Error('--repository must be OWNER/NAME on github.com, HOST/PATH, or a web address')
  return remote
}

async function findDefaultBranch(git: Git): Promise<string> {
  const ofOrigin = await git.ask(['symbolic-ref', '--quiet', 'refs/remotes/origin/HEAD'])
  if (ofOrigin?.startsWith(ofOriginPrefix)) return ofOrigin.slice(ofOriginPrefix.length)
  const head = await git.ask(['symbolic-ref', '--quiet', 'HEAD'])
  if (head?.startsWith(branchPrefix)) return head.slice(branchPrefix.length)
  throw new Error('The clone is on no branch (detached HEAD). Say which one to read: --branch NAME')
}

const ofOriginPrefix = 'refs/remotes/origin/'
const branchPrefix = 'refs/heads/'

/**
 * The remote's branch comes first: a commit that was not pushed is not on the branch. `rev-parse` would also take
 * `main~1` and `main@{0}`. HEAD of the remote is another name of its default branch.
 */
async function findTip(git: Git, branch: string): Promise<string | undefined> {
  if (branch === 'HEAD') return undefined
  for (const prefix of [ofOriginPrefix, branchPrefix]) {
    const tip = await git.ask(['show-ref', '--verify', '--hash', `${prefix}${branch}`])
    if (tip && fullSha.test(tip)) return tip
  }
  return undefined
}

async function explainNoTip(git: Git, branch: string, isGiven: boolean): Promise<string> {
  if ((await git.ask(['rev-list', '--all', '--max-count=1'])) === '') return 'The repository has no commits yet.'
  const problem = `There is no branch ${branch} in the clone.`
  return isGiven ? problem : `${problem} If the default branch was renamed, run: git remote set-head origin --auto`
}

const kinds: Record<string, TreeEntry> = { '120000': 'symbolic link', '160000': 'submodule' }

async function readTree(git: Git, tip: string): Promise<Map<string, TreeEntry>> {
  const tree = new Map<string, TreeEntry>()
  const output = git.stream(['ls-tree', '-r', '-z', '--full-tree', tip])
  for await (const parts of splitAt('\0', output)) {
    for (const part of parts) tree.set(part.slice(part.indexOf('\t') + 1), kinds[part.slice(0, 6)] ?? 'file')
  }
  return tree
}

/** Decodes a path. Returns undefined if it is not UTF-8: no prompt can be linked to it. */
export function pathText(bytes: string): string | undefined {
  const text = decode(bytes)
  return text.includes('\ufffd') ? undefined : text
}

const maxShownLength = 200

/** Shows a path in one line: control characters, and bytes that are not UTF-8, are escaped. */
export function escapePath(bytes: string): string {
  const text = pathText(bytes)
  const escaped =
    text === undefined
      ? bytes.replace(/[^\x20-\x7e]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)
      : text.replace(/\p{C}/gu, (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`)
  return escaped.length > maxShownLength ? `${escaped.slice(0, maxShownLength)}…` : escaped
}

/** user@host:path, the short form of ssh, unless it is a Windows path. */
const scpForm = /^(?:[^@/\s]+@)?([\w.-]{2,}):(?!\/\/)(.+)$/

/** Parses the address of a remote, or the name of a repository. Returns undefined for anything else, such as a folder. */
function parseRemote(given: string): Remote | undefined {
  const scp = scpForm.exec(given)
  if (scp) return ofHost(scp[1] as string, scp[2] as string)
  if (!given.includes('://')) return parseNamed(given)
  if (!URL.canParse(given)) return undefined
  const { protocol, hostname, host, pathname } = new URL(given)
  if (protocol === 'https:' || protocol === 'http:') return ofHost(host, pathname, protocol)
  return ['ssh:', 'git:', 'git+ssh:'].includes(protocol) && hostname ? ofHost(hostname, pathname) : undefined
}

function parseNamed(given: string): Remote | undefined {
  const name = parseRepository(given)
  const { host, path } = splitRepository(name ?? '')
  return name === undefined ? undefined : { name, webUrl: `https://${host}/${path}` }
}

/** Other names of hosts: the web site, and ssh over the port of HTTPS. */
const alias = /^(?:www|ssh|altssh)\.(?=(?:github\.com|gitlab\.com|bitbucket\.org)$)/

/** Leaves out a user name and a password in the address. */
function ofHost(given: string, pathname: string, protocol = 'https:'): Remote | undefined {
  const host = given.replace(alias, '')
  const path = pathname.replace(/^\/+|\/+$/g, '').replace(/\.git$/, '')
  // Without a dot or a port, two parts would be an owner and a name.
  const name = /[.:]/.test(host) || path.includes('/') ? parseRepository(`${host}/${path}`) : undefined
  return name === undefined ? undefined : { name, webUrl: `${protocol}//${host}/${path}` }
}
