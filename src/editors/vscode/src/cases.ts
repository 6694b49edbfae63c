// The test explorer: the cases of all packs of the workspace, as `policyd test` lists and runs them.

import * as path from 'node:path';
import * as vscode from 'vscode';
import { run } from './program';
import { programPath } from './settings';

const CASE_FILES = '**/tests/**/*.{yaml,yml}';
/** Time without a change after which the cases are listed again. */
const QUIET_MS = 500;

/** What `policyd test --format json` prints, as far as the explorer shows it. */
interface Results {
  packs: { cases: CaseResult[] }[];
}

interface CaseResult {
  file: string;
  line: number;
  name: string;
  result: 'passed' | 'failed' | 'skipped';
  reason: string | null;
  failures: Failure[];
}

interface Failure {
  step: number | null;
  what: string;
  line: number;
  column: number;
  wanted: string;
  got: string;
  behind: { what: string; lines: string }[];
}

/** Adds the test explorer. In a workspace that the user does not trust, it is empty. */
export function addTests(context: vscode.ExtensionContext): void {
  const controller = vscode.tests.createTestController('policyd', 'policyd');
  controller.resolveHandler = () => list(controller);
  controller.refreshHandler = () => list(controller);
  const handler: RunHandler = (request, token) => runCases(controller, request, token);
  controller.createRunProfile('Run', vscode.TestRunProfileKind.Run, handler, true);

  const watcher = vscode.workspace.createFileSystemWatcher(CASE_FILES);
  let timer: NodeJS.Timeout | undefined;
  const changed = () => {
    clearTimeout(timer);
    // Before the explorer asks for cases, no list needs an update.
    timer = setTimeout(() => controller.items.size > 0 && list(controller), QUIET_MS);
  };
  context.subscriptions.push(
    controller,
    watcher,
    watcher.onDidChange(changed),
    watcher.onDidCreate(changed),
    watcher.onDidDelete(changed),
    vscode.workspace.onDidGrantWorkspaceTrust(() => list(controller)),
    { dispose: () => clearTimeout(timer) },
  );
}

type RunHandler = (request: vscode.TestRunRequest, token: vscode.CancellationToken) => Promise<void>;

/** Runs `policyd test` on paths. Rejects with what it prints if there are no results. */
async function test(
  paths: string[],
  cwd: string,
  token: vscode.CancellationToken,
): Promise<CaseResult[]> {
  const args = ['test', '--format', 'json', ...paths];
  const { stdout, stderr } = await run(programPath(), args, cwd, token);
  if (!stdout.startsWith('{')) {
    throw new Error(stderr.trim());
  }
  const results = JSON.parse(stdout) as Results;
  const cases = results.packs.flatMap((pack) => pack.cases);
  return cases.map((it) => ({ ...it, file: path.resolve(cwd, it.file) }));
}

/** Lists the cases of the workspace: one item for each file, with one item for each case. */
async function list(controller: vscode.TestController): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    return;
  }
  const files = new Map<string, vscode.TestItem>();
  for (const folder of vscode.workspace.workspaceFolders ?? []) {
    const root = folder.uri.fsPath;
    const source = new vscode.CancellationTokenSource();
    // A folder without a pack has no results.
    const cases = await test([root], root, source.token).catch(() => []);
    for (const [id, it] of withIds(cases)) {
      const uri = vscode.Uri.file(it.file);
      const file = files.get(it.file) ?? controller.createTestItem(it.file, path.basename(it.file), uri);
      file.description = path.relative(root, path.dirname(it.file));
      files.set(it.file, file);
      const item = controller.createTestItem(id, it.name, uri);
      item.range = new vscode.Range(it.line - 1, 0, it.line - 1, 0);
      file.children.add(item);
    }
  }
  controller.items.replace([...files.values()]);
}

/** Gives cases ids: the file and the name, and a number for further cases of that name. */
function withIds(cases: CaseResult[]): Map<string, CaseResult> {
  const found = new Map<string, CaseResult>();
  for (const it of cases) {
    const base = `${it.file}#${it.name}`;
    let id = base;
    for (let number = 2; found.has(id); number += 1) {
      id = `${base}#${number}`;
    }
    found.set(id, it);
  }
  return found;
}

async function runCases(
  controller: vscode.TestController,
  request: vscode.TestRunRequest,
  token: vscode.CancellationToken,
): Promise<void> {
  const wanted = new Map<string, vscode.TestItem>();
  const excluded = new Set(request.exclude);
  const add = (item: vscode.TestItem) => {
    if (excluded.has(item)) {
      return;
    }
    if (item.children.size > 0) {
      item.children.forEach(add);
    } else {
      wanted.set(item.id, item);
    }
  };
  (request.include ?? [...controller.items].map(([, item]) => item)).forEach(add);

  const testRun = controller.createTestRun(request);
  wanted.forEach((item) => testRun.started(item));
  const files = new Set([...wanted.values()].flatMap((item) => item.uri?.fsPath ?? []));
  try {
    const first = [...files][0];
    const folder = first === undefined ? undefined : vscode.workspace.getWorkspaceFolder(vscode.Uri.file(first));
    const cwd = folder?.uri.fsPath ?? process.cwd();
    const ended = withIds(first === undefined ? [] : await test([...files], cwd, token));
    for (const [id, item] of wanted) {
      const it = ended.get(id);
      if (it === undefined) {
        testRun.errored(item, new vscode.TestMessage('The case file has no such case anymore.'));
      } else if (it.result === 'passed') {
        testRun.passed(item);
      } else if (it.result === 'skipped') {
        testRun.skipped(item);
      } else {
        testRun.failed(item, it.failures.map((failure) => message(failure, it.file)));
      }
    }
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    wanted.forEach((item) => testRun.errored(item, new vscode.TestMessage(text)));
  }
  testRun.end();
}

function message(failure: Failure, file: string): vscode.TestMessage {
  const behind = failure.behind.map((it) => `${it.what}\n${it.lines}`);
  const text = [failure.what, ...behind].join('\n\n');
  const shown = vscode.TestMessage.diff(text, failure.wanted, failure.got);
  const position = new vscode.Position(failure.line - 1, failure.column - 1);
  shown.location = new vscode.Location(vscode.Uri.file(file), position);
  return shown;
}
