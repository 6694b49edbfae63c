// Starts `policyd lsp` for the YAML files of the workspace. The server decides which files belong to a pack.

import * as vscode from 'vscode';
import {
  DidChangeConfigurationNotification,
  LanguageClient,
  ShowMessageNotification,
} from 'vscode-languageclient/node';
import { addTests } from './cases';
import { findProblem } from './program';
import { programPath, serverSettings } from './settings';

const INSTALL_PAGE = 'https://github.com/policyd/policyd#install';

let client: LanguageClient | undefined;
/** The last start of a server. The next one waits for it. */
let starting: Promise<void> = Promise.resolve();

/** Starts the extension. */
export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const output = vscode.window.createOutputChannel('policyd');
  context.subscriptions.push(
    output,
    vscode.commands.registerCommand('policyd.restart', () => restart(output)),
    vscode.commands.registerCommand('policyd.evaluateExpression', evaluate),
    vscode.workspace.registerTextDocumentContentProvider('policyd', { provideTextDocumentContent }),
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration('policyd.path')) {
        await restart(output);
      } else if (event.affectsConfiguration('policyd')) {
        const settings = serverSettings();
        await client?.sendNotification(DidChangeConfigurationNotification.type, { settings });
      }
    }),
  );
  addTests(context);
  await restart(output);
}

/** Stops the server. */
export async function deactivate(): Promise<void> {
  const former = client;
  client = undefined;
  // The client rejects to stop a server that did not start.
  if (former?.needsStop()) {
    await former.dispose();
  }
}

function restart(output: vscode.OutputChannel): Promise<void> {
  // The client shows why a server did not start.
  starting = starting.then(() => start(output)).catch(() => undefined);
  return starting;
}

async function start(output: vscode.OutputChannel): Promise<void> {
  await deactivate();
  const command = programPath();
  const problem = await findProblem(command);
  if (problem !== undefined) {
    void reportProblem(problem);
    return;
  }
  client = new LanguageClient('policyd', 'policyd language server', { command, args: ['lsp'] }, {
    documentSelector: [{ scheme: 'file', language: 'yaml' }],
    initializationOptions: serverSettings,
  });
  // A notification of VS Code has no lines, and the carets below an expression need them.
  client.onNotification(ShowMessageNotification.type, ({ message }) => {
    if (message.includes('\n')) {
      output.appendLine(message);
      output.show(true);
    } else {
      void vscode.window.showInformationMessage(message);
    }
  });
  await client.start();
}

async function reportProblem(problem: string): Promise<void> {
  const choice = await vscode.window.showErrorMessage(problem, 'Install', 'Open Settings');
  if (choice === 'Install') {
    await vscode.env.openExternal(vscode.Uri.parse(INSTALL_PAGE));
  } else if (choice === 'Open Settings') {
    await vscode.commands.executeCommand('workbench.action.openSettings', 'policyd.path');
  }
}

/** Evaluates the expression at the cursor. The server shows the values of its parts. */
async function evaluate(): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  const textDocument = { uri: editor.document.uri.toString() };
  const { line, character } = editor.selection.active;
  // `vscode-languageclient` registers the commands of the server.
  await vscode.commands.executeCommand('policyd.evaluate', {
    textDocument,
    position: { line, character },
  });
}

/** Shows a file of the built-in pack, to which definitions lead. */
async function provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
  if (client === undefined) {
    throw new Error('The language server is not running.');
  }
  const params = { uri: uri.toString(true) };
  const found = await client.sendRequest<{ text: string }>('workspace/textDocumentContent', params);
  return found.text;
}
