export type PageFiles = { script: string; style: string }

/** The page, the same at every path of the console. `root` is the relative path to the root of the service. */
export const consolePage = (root: string, { script, style }: PageFiles) => `<!doctype html>
<html lang="en-GB">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>prompt-signals</title>
    <link rel="icon" href="${icon}">
    <link rel="stylesheet" href="${root}console/${style}">
    <script type="module" src="${root}console/${script}"></script>
  </head>
  <body>
    <div id="console"></div>
    <noscript>This page needs JavaScript. The API is documented at <a href="${root}docs">docs</a>.</noscript>
  </body>
</html>
`

const icon = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><path fill="#2b6cb0" d="M2 9h3V5H2zm5 0h3V2H7zm5 0h2V6h-2z"/><path fill="#c05621" d="M2 10h3v2H2zm5 0h3v4H7zm5 0h2v1h-2z"/></svg>',
)}`

/** Loads nothing from elsewhere, runs only the console's script, and never turns text into a script. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

export const pageHeaders = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
}
