// The code that documents show, to be run as it stands there.

/** The first block of code of a language in a document that has a mark in it. */
export async function readBlock(document: string, language: string, mark = ''): Promise<string> {
  const text = await Bun.file(document).text()
  const blocks = [...text.matchAll(new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``, 'g'))]
  return blocks.map(([, block = '']) => block).find((block) => block.includes(mark)) ?? ''
}

// biome-ignore lint/suspicious/noExplicitAny: a pipeline has any shape
export const readYaml = async (document: string, mark: string): Promise<any> =>
  Bun.YAML.parse(await readBlock(document, 'yaml', mark))
