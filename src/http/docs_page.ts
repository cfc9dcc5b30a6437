/** The page. Its URLs are relative, so that it also works below a path of a larger site. */
export const docsPage = (folder: string, console: string | null) => `<!doctype html>
<html lang="en-GB">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>prompt-signals API</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="${folder}swagger-ui.css">
    <style>
      body { margin: 0 }
      nav { max-width: 1460px; margin: 0 auto; padding: 16px 20px 0; font: 15px system-ui, sans-serif }
      nav a { color: #1f62a5 }
      .swagger-ui .info { margin: 32px 0 16px }
      .swagger-ui .scheme-container { padding: 16px 0 }
      /* This is the only server, and no response has OpenAPI links. */
      .swagger-ui .scheme-container .schemes .schemes-server-container, .swagger-ui .response-col_links { display: none }
    </style>
  </head>
  <body>
    ${console === null ? '' : `<nav><a href="${console}">Console</a></nav>`}
    <main id="docs"></main>
    <noscript>This page needs JavaScript. The OpenAPI document is at <a href="${folder}json">${folder}json</a>.</noscript>
    <script src="${folder}swagger-ui-bundle.js"></script>
    <script src="${folder}start.js"></script>
  </body>
</html>
`

/** A separate file, because the policy of the page allows no inline script. */
export const startScript = `SwaggerUIBundle({
  url: new URL('json', document.currentScript.src).href,
  dom_id: '#docs',
  deepLinking: true,
  displayRequestDuration: true,
  // Keeps the key across reloads.
  persistAuthorization: true,
  // Expands schemas, with their bounds.
  defaultModelExpandDepth: 5,
  showCommonExtensions: true,
})
`

/** Loads nothing from elsewhere. Swagger UI uses inline styles, and data URLs for icons. */
export const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')
