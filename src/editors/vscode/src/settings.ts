// The settings of the user.

import * as vscode from 'vscode';

const SERVER_SETTINGS = ['profile', 'harness', 'session', 'replay', 'recordings'];

/** Returns the path of the program. */
export function programPath(): string {
  const path = vscode.workspace.getConfiguration('policyd').get<string>('path');
  return path ? path : 'policyd';
}

/** Returns the settings that the server reads. */
export function serverSettings(): Record<string, unknown> {
  const settings = vscode.workspace.getConfiguration('policyd');
  const entries = SERVER_SETTINGS.map((name) => [name, settings.get(name)]);
  // The extension shows files of the built-in pack.
  return { ...Object.fromEntries(entries), virtualFiles: true };
}
