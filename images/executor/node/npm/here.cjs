#!/usr/bin/env node
// npm works on the nearest folder above that has packages. Where none has, that would be the root, whose packages are the image's and
// read-only: then it works on the current folder.
const { existsSync } = require('node:fs')
const { dirname, join } = require('node:path')

const has = (folder) => ['package.json', 'node_modules'].some((name) => existsSync(join(folder, name)))
const told = process.argv.some((word) => /^(-g|-C|--global|--location|--prefix)(=|$)/.test(word))
let folder = process.cwd()
while (folder !== '/' && !has(folder)) folder = dirname(folder)
if (folder === '/' && !told) process.argv.splice(2, 0, '--prefix', process.cwd())
require('/usr/local/lib/node_modules/npm/bin/npm-cli.js')
