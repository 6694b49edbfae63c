// The installed program: whether it has a language server, and what it prints.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { CancellationToken } from 'vscode';

const CHECK_TIMEOUT_MS = 10_000;

/** What a program printed. */
export interface Output {
  stdout: string;
  stderr: string;
}

/** Returns why the language server cannot start, and how to fix it; `undefined` if it can. */
export async function findProblem(program: string): Promise<string | undefined> {
  try {
    await promisify(execFile)(program, ['lsp', '--help'], { timeout: CHECK_TIMEOUT_MS });
    return undefined;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') {
      return `Could not find \`${program}\`. Install policyd, or set \`policyd.path\` to its path.`;
    }
    if (typeof code === 'number') {
      return `\`${program}\` has no language server. Update policyd, or set \`policyd.path\` to a newer one.`;
    }
    return `Could not start \`${program}\`: ${String(error)}. Set \`policyd.path\` to the path of policyd.`;
  }
}

/** Runs a program to its end, with any exit code. Rejects if it cannot start, or if it was canceled. */
export function run(
  program: string,
  args: string[],
  cwd: string,
  token: CancellationToken,
): Promise<Output> {
  const canceled = new AbortController();
  const subscription = token.onCancellationRequested(() => canceled.abort());
  const options = { cwd, signal: canceled.signal, maxBuffer: Infinity };
  return new Promise<Output>((resolve, reject) => {
    execFile(program, args, options, (error, stdout, stderr) => {
      if (error && typeof error.code !== 'number') {
        reject(error);
      } else {
        resolve({ stdout, stderr });
      }
    });
  }).finally(() => subscription.dispose());
}
