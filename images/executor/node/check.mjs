// Fails the image's build if the kernel's modules, or what cells shall be able to import, cannot be loaded.
import { execFileSync } from 'node:child_process'
import { createRequire } from 'node:module'

for (const name of ['zeromq', 'acorn', 'amaro', 'typescript']) await import(name)
const cells = createRequire('/workspace/cell.js')
const wanted = ['chart.js', 'cheerio', 'csv-parse/sync', 'd3', 'lodash', 'simple-statistics', 'zod']
for (const name of wanted) await import(cells.resolve(name))
const { createCanvas } = cells('@napi-rs/canvas')
if (createCanvas(10, 10).toBuffer('image/png').length === 0) throw new Error('nothing was drawn')
execFileSync('npm', ['--version'])
