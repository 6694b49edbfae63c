// Bundles the extension into one file, with the licenses of the packages in it.

import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const { metafile } = await build({
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  bundle: true,
  minify: true,
  platform: 'node',
  target: 'node20',
  external: ['vscode'],
  metafile: true,
});

const folder = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//;
const folders = new Set(Object.keys(metafile.inputs).map((file) => folder.exec(file)?.[1]));
folders.delete(undefined);
const notices = [...folders].sort().map((it) => {
  const { name, version } = JSON.parse(readFileSync(join(it, 'package.json'), 'utf8'));
  const license = readdirSync(it).find((file) => /^licen[sc]e/i.test(file));
  if (license === undefined) {
    throw new Error(`${name} has no license file`);
  }
  return `${name} ${version}\n\n${readFileSync(join(it, license), 'utf8').trim()}\n`;
});
writeFileSync('dist/THIRD-PARTY-NOTICES', notices.join(`\n${'-'.repeat(80)}\n\n`));
