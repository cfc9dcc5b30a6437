// nginx in front of the service, set up as in deploy/nginx.conf.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder } from './program.ts'

/** Starts nginx on an address in its own notation; it may take a moment until it answers. */
export async function startNginx(upstreamUrl: string, address: string): Promise<{ stop(): Promise<void> }> {
  const folder = createFolder()
  const site = (await readFile(join(import.meta.dir, '../deploy/nginx.conf'), 'utf8'))
    .replace('127.0.0.1:3000', new URL(upstreamUrl).host)
    .replace('listen 80', `listen ${address}`)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  )
  await writeFile(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; events {} http { access_log off; ${temporary.join(' ')}\n${site}}`,
  )
  const command = [process.env.NGINX_PATH ?? '', '-e', join(folder, 'errors'), '-c', join(folder, 'nginx.conf')]
  const nginx = Bun.spawn(command, { stdio: ['ignore', 'ignore', 'inherit'] })
  return {
    async stop() {
      nginx.kill()
      await nginx.exited
    },
  }
}
