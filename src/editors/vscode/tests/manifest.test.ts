// The manifest, the grammar, and the snippets agree with the program and with the book.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { findProblem } from '../src/program';

const extension = path.resolve(__dirname, '..');
const repository = path.resolve(extension, '../../..');
const program = path.resolve(process.env['POLICYD_BIN'] ?? path.join(repository, 'target/debug/policyd'));

const read = (...parts: string[]) => readFileSync(path.join(...parts), 'utf8');
const readJson = (...parts: string[]) => JSON.parse(read(...parts));

/** Runs the program, and returns what it prints. Throws that if the exit code is not 0. */
function policyd(...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' });
  assert.equal(status, 0, `policyd ${args.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

/** Returns the keys of a JSON schema whose values are expressions. */
function expressionKeys(schema: unknown, key = ''): string[] {
  if (typeof schema !== 'object' || schema === null) {
    return [];
  }
  const { type, maxLength } = schema as { type?: unknown; maxLength?: unknown };
  // Besides expressions, no text can also be a boolean or a number.
  if (Array.isArray(type) && ['string', 'boolean', 'number'].every((it) => type.includes(it)) && maxLength) {
    return [key];
  }
  return Object.entries(schema).flatMap(([name, value]) =>
    name === 'properties'
      ? Object.entries(value as object).flatMap(([it, inner]) => expressionKeys(inner, it))
      : expressionKeys(value, key),
  );
}

test('the grammar knows each key that has an expression', () => {
  const names = policyd('schema').trim().split('\n');
  const keys = names.flatMap((name) => expressionKeys(JSON.parse(policyd('schema', name))));
  const wanted = [...new Set(keys)].sort();
  assert.ok(wanted.length > 2, wanted.join(' '));
  const { patterns } = readJson(extension, 'syntaxes/expression.tmLanguage.json');
  for (const { begin } of patterns) {
    const alternatives = /\(([a-z|]+)\)\(:\)/.exec(begin)?.[1]?.split('|').sort();
    assert.deepEqual(alternatives, wanted, begin);
  }
});

test('the settings are those of the page about the language server', () => {
  const page = read(repository, 'src/docs/reference/lsp.md').split('## Settings')[1]?.split('\n## ')[0] ?? '';
  const documented = [...page.matchAll(/^\| `(\w+)` \|/gm)].map((it) => it[1]);
  const settings = Object.keys(readJson(extension, 'package.json').contributes.configuration.properties);
  const own = ['policyd.path', 'policyd.trace.server'];
  const ofServer = settings.filter((it) => !own.includes(it)).map((it) => it.replace('policyd.', ''));
  // The extension sets `virtualFiles` itself.
  assert.deepEqual([...ofServer, 'virtualFiles'].sort(), documented.sort());
});

test('the version is that of the program', () => {
  const { version } = readJson(extension, 'package.json');
  assert.equal(policyd('--version').trim(), `policyd ${version}`);
});

/** The file of a pack to which each snippet belongs. */
const FILES: Record<string, string> = {
  Manifest: 'policyd.yaml',
  Check: 'considerations.yaml',
  Checker: 'checkers.yaml',
  'Command guard': 'guards.yaml',
  'Path guard': 'guards.yaml',
  Probe: 'probes.yaml',
  'Case of a check': 'tests/cases.yaml',
  'Case of a guard': 'tests/cases.yaml',
};

/** A check that uses the checker and the probe of the snippets: unused ones are findings. */
const USER = `- id: ci_known
  category: CI
  question: Is the change in the changelog?
  severity: warning
  applicable_session_types: [DEVELOPMENT]
  when: probes.ci.ok
  checker: changelog_edited
  guidance: Add a line to CHANGELOG.md.
`;

/** Returns what a snippet inserts if the user accepts each default. */
function expand(body: string[]): string {
  const text = body.join('\n').replace(/\$\{\d+\|([^,|]*)[^}]*\|\}/g, '$1').replace(/\$\{\d+:((?:[^}\\])*)\}/g, '$1');
  return text.replaceAll('$$', '$');
}

test('a pack of all snippets has no findings, and its cases pass', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'policyd-snippets-'));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(path.join(folder, 'tests'));
  const snippets: Record<string, { body: string[] }> = readJson(extension, 'snippets/policyd.json');
  const { 'Suppression comment': comment, ...entries } = snippets;
  assert.deepEqual(Object.keys(entries), Object.keys(FILES));
  for (const [name, { body }] of Object.entries(entries)) {
    appendFileSync(path.join(folder, FILES[name] ?? ''), `${expand(body)}\n`);
  }
  appendFileSync(path.join(folder, 'considerations.yaml'), USER);
  policyd('lint', folder);
  assert.match(policyd('test', folder), /2 passed/);

  // A comment that suppresses nothing is a finding, so the linter reads the snippet.
  const guards = path.join(folder, 'guards.yaml');
  writeFileSync(guards, `${expand(comment?.body ?? [])}\n${readFileSync(guards, 'utf8')}`);
  assert.throws(() => policyd('lint', '--fail-level', 'note', folder), /PD601/);
});

test('a program that is missing or too old is named with the fix', async () => {
  assert.equal(await findProblem(program), undefined);
  assert.match((await findProblem('no-such-policyd')) ?? '', /Could not find `no-such-policyd`\. Install policyd/);
  assert.match((await findProblem('false')) ?? '', /`false` has no language server\. Update policyd/);
  assert.match((await findProblem(tmpdir())) ?? '', /Set `policyd\.path` to the path of policyd/);
});
