// Reading of cells' source.
import { parse as acorn } from 'acorn'

const options = {
  ecmaVersion: 'latest', sourceType: 'script', allowAwaitOutsideFunction: true, allowImportExportEverywhere: true, allowHashBang: true,
}

// parse returns a cell's program. Its error has pos, where reading stopped.
export function parse(source) {
  if (/^\s*{/.test(source) && !/;\s*$/.test(source)) {
    const object = objectLiteral(source)
    if (object) return object
  }
  return acorn(source, options)
}

// objectLiteral reads a cell that begins with a brace as a value, as people mean it who type {a: 1}. A cell that could only be
// a block is none.
function objectLiteral(source) {
  try {
    const program = acorn(`(${source}\n)`, options)
    const [statement, ...more] = program.body
    if (more.length > 0 || statement.expression?.type !== 'ObjectExpression') return null
    walk(program, node => { node.start--, node.end-- })
    return program
  } catch {
    return null
  }
}

// completeness says whether a cell can be run: "complete", "incomplete" when more must follow, or "invalid".
export function completeness(source) {
  try {
    parse(source)
    return 'complete'
  } catch (error) {
    return error.pos >= source.trimEnd().length || /^Unterminated (template|comment)/.test(error.message) ? 'incomplete' : 'invalid'
  }
}

// walk visits a node and all below it, in order, but nothing below a node for which visit returns false.
export function walk(node, visit) {
  if (visit(node) === false) return
  for (const value of Object.values(node)) {
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item?.type === 'string') walk(item, visit)
    } else if (typeof value?.type === 'string') walk(value, visit)
  }
}

const scopes = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression', 'StaticBlock'])

// walkScope is walk without what is in functions: what they await and declare is their own.
export function walkScope(node, visit) {
  walk(node, inner => {
    if (inner !== node && scopes.has(inner.type)) return visit(inner), false
    return visit(inner)
  })
}

// bound returns the names that a pattern binds.
export function bound(pattern) {
  switch (pattern?.type) {
    case 'Identifier': return [pattern.name]
    case 'ObjectPattern': return pattern.properties.flatMap(property => bound(property.value ?? property.argument))
    case 'ArrayPattern': return pattern.elements.flatMap(bound)
    case 'AssignmentPattern': return bound(pattern.left)
    case 'RestElement': return bound(pattern.argument)
    default: return []
  }
}
