import type { BlockList } from 'node:net'

/** Hosts by name, in lower case, and by address. */
export type HostList = { names: Set<string>; networks: BlockList }

/** Splits a URL with several hosts (`scheme://user@h1:1,h2:2/path`) into one URL for each; none if it is invalid. */
export function splitHosts(text: string): URL[] {
  const [, before = '', hosts = '', after = ''] = /^([a-z+]+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is.exec(text) ?? []
  const urls = hosts.split(',').map((host) => before + host + after)
  return urls.every((url) => URL.canParse(url)) ? urls.map((url) => new URL(url)) : []
}

/** The hosts of these URLs of Postgres, with a port each, for a message. */
export const listHosts = (urls: URL[]): string =>
  urls.map(({ hostname, port }) => `${hostname}:${port || 5432}`).join(', ')
