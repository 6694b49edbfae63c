// Starts the web server of VS Code with the packaged extension, opens it in Chromium, and runs the suite inside.
//
// The package `code-server` contains that server. Its native modules are not needed here.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';

const CODE_SERVER = 'code-server@4.100.3';
const WAIT_MS = 180_000;
const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];

const extension = path.resolve(__dirname, '../..');
const repository = path.resolve(extension, '../../..');
const program = path.resolve(process.env['POLICYD_BIN'] ?? path.join(repository, 'target/debug/policyd'));

function findBrowser(): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(path.delimiter);
  const paths = BROWSERS.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  return paths.find((it) => existsSync(it));
}

/** Returns the directory of the server of VS Code; installs it once for all projects of the user. */
function installServer(): string {
  const cache = path.join(homedir(), '.cache/policyd-vscode', CODE_SERVER);
  const server = path.join(cache, 'node_modules/code-server/lib/vscode');
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  if (!existsSync(path.join(server, 'node_modules'))) {
    mkdirSync(cache, { recursive: true });
    execFileSync('npm', ['install', ...options, '--prefix', cache, CODE_SERVER], { stdio: 'inherit' });
    execFileSync('npm', ['install', ...options, '--omit=dev'], { stdio: 'inherit', cwd: server });
  }
  return server;
}

/** A project with a pack and a recorded session, and a home directory of a user who trusts the pack. */
function prepareMachine(machine: string): { project: string; home: string } {
  const project = path.join(machine, 'shop');
  const home = path.join(machine, 'home');
  const config = path.join(home, '.config/policyd');
  cpSync(path.join(extension, 'tests/vscode/shop'), project, { recursive: true });
  mkdirSync(path.join(project, '.git'));
  mkdirSync(config, { recursive: true });
  const pack = { folder: path.join(project, '.policyd/policies'), hash: 'any', since: '2025-01-01T00:00:00Z' };
  writeFileSync(path.join(config, 'trust.json'), JSON.stringify({ version: 1, packs: [pack] }));
  return { project, home };
}

/** Starts the server of VS Code, and returns its port. */
function startServer(server: string, data: string, home: string): Promise<{ child: ChildProcess; port: string }> {
  const options = ['--host', '127.0.0.1', '--port', '0', '--without-connection-token', '--disable-workspace-trust'];
  const terms = ['--accept-server-license-terms', '--telemetry-level', 'off', '--server-data-dir', data];
  const child = spawn(process.execPath, ['out/server-main.js', ...options, ...terms], {
    cwd: server,
    env: { ...process.env, HOME: home, XDG_CONFIG_HOME: path.join(home, '.config') },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return new Promise((resolve, reject) => {
    child.on('exit', (code) => reject(new Error(`the server of VS Code ended with ${code}`)));
    child.stdout.on('data', (text: Buffer) => {
      const port = /listening on (\d+)/.exec(text.toString())?.[1];
      if (port !== undefined) {
        resolve({ child, port });
      }
    });
  });
}

/** Opens the project in the browser, and returns the exit code of the suite. */
async function runSuite(browserPath: string, port: string, project: string): Promise<number> {
  const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox'] });
  try {
    const page = await browser.newPage();
    const remote = `vscode-remote://127.0.0.1:${port}`;
    const payload = [
      ['extensionDevelopmentPath', `${remote}${path.join(extension, 'out/vscode')}`],
      ['extensionTestsPath', `${remote}${path.join(extension, 'out/vscode/suite.js')}`],
      ['skipWelcome', 'true'],
    ];
    const ended = new Promise<number>((resolve, reject) => {
      // Everything else is about VS Code.
      const isResult = (it: unknown) => /^(not )?ok /.test(String(it));
      const log = (_: string, values: unknown[]) => values.some(isResult) && console.log(...values);
      void page.exposeFunction('codeAutomationLog', log);
      void page.exposeFunction('codeAutomationExit', resolve);
      setTimeout(() => reject(new Error(`the suite did not end after ${WAIT_MS} ms`)), WAIT_MS).unref();
    });
    const query = new URLSearchParams({ folder: project, payload: JSON.stringify(payload) });
    await page.goto(`http://127.0.0.1:${port}/?${query}`);
    return await ended;
  } finally {
    await browser.close();
  }
}

async function main(): Promise<number> {
  const browser = findBrowser();
  if (browser === undefined) {
    console.log(`skipped: VS Code needs a browser: ${BROWSERS.join(', ')}`);
    return 0;
  }
  let server: string;
  try {
    server = installServer();
  } catch (error) {
    console.log(`skipped: ${CODE_SERVER} cannot be installed: ${String(error)}`);
    return 0;
  }
  const machine = mkdtempSync(path.join(tmpdir(), 'policyd-vscode-'));
  let child: ChildProcess | undefined;
  try {
    const { project, home } = prepareMachine(machine);
    const data = path.join(machine, 'data');
    const settings = {
      'policyd.path': program,
      'policyd.session': path.join(project, 'session.jsonl'),
      'policyd.recordings': [path.join(project, 'session.jsonl')],
    };
    mkdirSync(path.join(data, 'data/Machine'), { recursive: true });
    writeFileSync(path.join(data, 'data/Machine/settings.json'), JSON.stringify(settings));
    const [vsix] = readdirSync(extension).filter((name) => name.endsWith('.vsix'));
    if (vsix === undefined) {
      throw new Error('no package: run `npm run package` first');
    }
    const install = ['--install-extension', path.join(extension, vsix), '--server-data-dir', data];
    execFileSync(process.execPath, ['out/server-main.js', ...install], { cwd: server, stdio: 'ignore' });
    const started = await startServer(server, data, home);
    child = started.child;
    return await runSuite(browser, started.port, project);
  } finally {
    child?.removeAllListeners('exit');
    child?.kill();
    rmSync(machine, { recursive: true, force: true });
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
