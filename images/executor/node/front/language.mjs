// What the kernel says of its languages.
const languages = {
  javascript: { name: 'javascript', mimetype: 'text/javascript', file_extension: '.js', pygments_lexer: 'javascript', codemirror_mode: 'javascript', version: process.versions.node },
  typescript: { name: 'typescript', mimetype: 'text/typescript', file_extension: '.ts', pygments_lexer: 'typescript', codemirror_mode: 'typescript', version: process.versions.node },
}

export function languageOf(name) {
  const info = languages[name]
  if (!info) throw new Error(`there is no language ${name}`)
  return { info }
}
