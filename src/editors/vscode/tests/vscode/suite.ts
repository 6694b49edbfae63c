// Runs inside VS Code, with the packaged extension installed: what the user sees of the server.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import * as vscode from 'vscode';

const WAIT_MS = 20_000;
const POLL_MS = 50;

/** Returns the first value that is neither false nor undefined. */
async function eventually<T>(
  what: string,
  find: () => T | Promise<T>,
): Promise<Exclude<T, false | undefined>> {
  for (const end = Date.now() + WAIT_MS; Date.now() < end; ) {
    const found = await find();
    if (found) {
      return found as Exclude<T, false | undefined>;
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  throw new Error(`${what}: not after ${WAIT_MS} ms`);
}

async function open(name: string): Promise<vscode.TextEditor> {
  const folder = vscode.workspace.workspaceFolders?.[0];
  assert.ok(folder);
  const uri = vscode.Uri.joinPath(folder.uri, '.policyd/policies', name);
  return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri));
}

/** Returns the position behind a text. */
function behind(editor: vscode.TextEditor, text: string): vscode.Position {
  const at = editor.document.getText().indexOf(text);
  assert.ok(at >= 0, text);
  return editor.document.positionAt(at + text.length);
}

async function insert(editor: vscode.TextEditor, at: vscode.Position, text: string): Promise<void> {
  assert.ok(await editor.edit((edit) => edit.insert(at, text)));
}

/** Runs a command of VS Code that asks the providers. */
function provide<T>(command: string, ...args: unknown[]): Thenable<T> {
  return vscode.commands.executeCommand<T>(`vscode.execute${command}`, ...args);
}

const findings = (editor: vscode.TextEditor) =>
  vscode.languages.getDiagnostics(editor.document.uri).map((it) =>
    typeof it.code === 'object' ? it.code.value : it.code,
  );

const tests: Record<string, () => Promise<void>> = {
  'findings and a quick fix': async () => {
    const editor = await open('guards.yaml');
    const extension = vscode.extensions.getExtension('policyd.policyd');
    await eventually('activation', () => extension?.isActive);
    const key = behind(editor, '  decision');
    await insert(editor, key.translate(0, -3), 'z');
    await eventually('finding', () => findings(editor).includes('PD003'));
    const range = new vscode.Range(key, key);
    const actions = await provide<vscode.CodeAction[]>('CodeActionProvider', editor.document.uri, range);
    const fix = actions.find((it) => it.title.startsWith('Replace `deciszion` with `decision`'));
    assert.ok(fix?.edit, actions.map((it) => it.title).join());
    assert.ok(await vscode.workspace.applyEdit(fix.edit));
    await eventually('no finding', () => findings(editor).length === 0);
  },

  'completion and an explanation inside an expression': async () => {
    const editor = await open('considerations.yaml');
    const at = behind(editor, 'satisfied: files.');
    const { items } = await provide<vscode.CompletionList>('CompletionItemProvider', editor.document.uri, at);
    const labels = items.map((it) => (typeof it.label === 'string' ? it.label : it.label.label));
    assert.ok(labels.includes('matching(text)'), labels.join());
    const hovers = await provide<vscode.Hover[]>('HoverProvider', editor.document.uri, at.translate(0, 2));
    const text = hovers.flatMap((it) => it.contents).map((it) => (typeof it === 'string' ? it : it.value));
    assert.match(text.join(), /matching/);
  },

  'a rename across files': async () => {
    const editor = await open('guards.yaml');
    const at = behind(editor, 'id: deploy');
    const edit = await provide<vscode.WorkspaceEdit>('DocumentRenameProvider', editor.document.uri, at, 'release');
    const names = edit.entries().map(([uri]) => path.basename(uri.path));
    assert.deepEqual(names.sort(), ['cases.yaml', 'guards.yaml']);
    assert.ok(await vscode.workspace.applyEdit(edit));
    assert.match(editor.document.getText(), /^- id: release$/m);
    await vscode.workspace.saveAll();
    await eventually('no finding', () => findings(editor).length === 0);
  },

  'a lens shows the cases and recorded sessions, and its commands run': async () => {
    const editor = await open('considerations.yaml');
    const lenses = await eventually('lenses', async () => {
      const found = await provide<vscode.CodeLens[]>('CodeLensProvider', editor.document.uri);
      // The cases run again, because the test before this one renamed a rule.
      const isComplete = ['passed', 'recorded stops'].every((text) =>
        found.some((it) => it.command?.title.includes(text)),
      );
      return isComplete && found;
    });
    const titles = lenses.map((it) => it.command?.title);
    assert.deepEqual(titles, ['1 case: 1 passed | run', 'would fire on 1 of 1 recorded stops | show']);
    for (const { command } of lenses) {
      assert.ok(command);
      await vscode.commands.executeCommand(command.command, ...(command.arguments ?? []));
    }
  },

  'the expression at the cursor is evaluated': async () => {
    const editor = await open('considerations.yaml');
    const at = behind(editor, 'when: files');
    editor.selection = new vscode.Selection(at, at);
    await vscode.commands.executeCommand('policyd.evaluateExpression');
    const params = { textDocument: { uri: editor.document.uri.toString() }, position: at };
    const { value } = await vscode.commands.executeCommand<{ value: string }>('policyd.evaluate', params);
    assert.equal(value, 'true');
    const whole = new vscode.Range(0, 0, editor.document.lineCount, 0);
    const hints = await eventually('hints', async () => {
      const found = await provide<vscode.InlayHint[]>('InlayHintProvider', editor.document.uri, whole);
      return found.length > 0 && found;
    });
    assert.ok(hints[0]);
  },

  'a definition leads into the built-in pack': async () => {
    const editor = await open('guards.yaml');
    const at = behind(editor, '- id: git_push');
    const found = await provide<vscode.Location[]>('DefinitionProvider', editor.document.uri, at);
    const builtin = found.find((it) => it.uri.scheme === 'policyd');
    assert.ok(builtin, found.map((it) => it.uri.toString()).join());
    const document = await vscode.workspace.openTextDocument(builtin.uri);
    assert.match(document.getText(builtin.range), /git_push_force/);
  },

  'the test explorer lists the cases and runs them': async () => {
    await vscode.commands.executeCommand('testing.refreshTests');
    await vscode.commands.executeCommand('testing.runAll');
    const results = await eventually('results', () => {
      const [last] = vscode.tests.testResults;
      return last?.completedAt !== undefined && last.results;
    });
    const cases = results.flatMap((root) => root.children).flatMap((file) => file.children);
    assert.deepEqual(cases.map((it) => it.label), ['a release asks the user', 'code without a line', 'a case that fails']);
    const states = cases.map((it) => it.taskStates[0]);
    const { Passed, Failed } = vscode.TestResultState;
    assert.deepEqual(states.map((it) => it?.state), [Passed, Passed, Failed]);
    const message = states[2]?.messages[0];
    assert.match(`${message?.expectedOutput} ${message?.actualOutput}`, /^silent fired$/);
    assert.equal(message?.location?.range.start.line, 15);
  },

  'the grammar marks expressions, with the grammar of YAML that VS Code has': async () => {
    const found = await expressions([
      '- id: a',
      '  when: files.kind("code").count > 0',
      '  unless: >-',
      '    now.hour < 9 ||',
      '      session.interactive',
      '  message: "when: later"',
      '  prints: |',
      '    when: never',
      '  details: [{when: "a == \\"b\\"", text: c}]',
      '- when: state.blocks > 0',
      '  unless:',
      "    - 'a pattern'",
    ]);
    assert.deepEqual(found, [
      'files.kind("code").count > 0',
      '>-',
      'now.hour < 9 ||',
      'session.interactive',
      '"a == \\"b\\""',
      'state.blocks > 0',
    ]);
  },

  'another program is used as soon as the setting names it': async () => {
    const settings = vscode.workspace.getConfiguration('policyd');
    const program = settings.get('path');
    const editor = await open('guards.yaml');
    const symbols = () => provide<unknown[] | undefined>('DocumentSymbolProvider', editor.document.uri);
    await settings.update('path', 'no-such-policyd', vscode.ConfigurationTarget.Global);
    await eventually('no server', async () => !(await symbols())?.length);
    await settings.update('path', program, vscode.ConfigurationTarget.Global);
    await eventually('a server', async () => (await symbols())?.length);
  },
};

/** Returns the parts of lines that the grammar marks as expressions. */
async function expressions(lines: string[]): Promise<string[]> {
  const require = createRequire(path.join(vscode.env.appRoot, 'package.json'));
  const textmate: typeof import('vscode-textmate') = require('vscode-textmate');
  const oniguruma: typeof import('vscode-oniguruma') = require('vscode-oniguruma');
  await oniguruma.loadWASM(readFileSync(require.resolve('vscode-oniguruma/release/onig.wasm')));
  const grammars = vscode.extensions.all.flatMap((extension) => {
    const contributed: { scopeName: string; path: string; injectTo?: string[] }[] =
      extension.packageJSON.contributes?.grammars ?? [];
    return contributed.map((it) => ({ ...it, path: path.join(extension.extensionPath, it.path) }));
  });
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async (scope) => {
      const found = grammars.find((it) => it.scopeName === scope);
      return found ? textmate.parseRawGrammar(readFileSync(found.path, 'utf8'), found.path) : null;
    },
    getInjections: (scope) =>
      grammars.filter((it) => it.injectTo?.includes(scope)).map((it) => it.scopeName),
  });
  const grammar = await registry.loadGrammar('source.yaml');
  assert.ok(grammar);
  let stack = textmate.INITIAL;
  return lines.flatMap((line) => {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, stack);
    stack = ruleStack;
    const marked = tokens.filter((it) => it.scopes.includes('meta.expression.policyd'));
    const text = marked.map((it) => line.slice(it.startIndex, it.endIndex)).join('').trim();
    return text ? [text] : [];
  });
}

/** Runs all tests. VS Code calls it. */
export async function run(): Promise<void> {
  const failed: string[] = [];
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test();
      console.log(`ok ${name}`);
    } catch (error) {
      failed.push(name);
      console.log(`not ok ${name}\n${error instanceof Error ? error.stack : String(error)}`);
    }
  }
  if (failed.length > 0) {
    throw new Error(`failed: ${failed.join('; ')}`);
  }
}
