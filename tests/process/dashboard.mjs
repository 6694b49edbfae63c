// The pages of the dashboard in Chromium, for `tests/process/dashboard.rs`.
//
// `--check` prints `ready`, or what is missing. Else: the link, and the project. POLICYD_NODE_MODULES names the directory
// with playwright-core and axe-core, and POLICYD_SCREENSHOTS one for screenshots, three of which are in the book.
import { createRequire } from "node:module";
import { existsSync, readFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import path from "node:path";

const CHROMIUM = "/usr/bin/chromium";
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const modules = process.env.POLICYD_NODE_MODULES ?? path.join(process.cwd(), "node_modules");
const load = createRequire(path.join(modules, "none.js"));

function missing() {
  if (!existsSync(CHROMIUM)) return `${CHROMIUM} is not installed`;
  try {
    load.resolve("playwright-core");
    load.resolve("axe-core");
  } catch {
    return "playwright-core and axe-core are not in POLICYD_NODE_MODULES";
  }
  return "";
}

if (process.argv[2] === "--check") {
  console.log(missing() || "ready");
  process.exit(0);
}

const [, , link, project] = process.argv;
const { chromium } = load("playwright-core");
const axe = readFileSync(load.resolve("axe-core"), "utf8");
const root = new URL(link).origin;
const screenshots = process.env.POLICYD_SCREENSHOTS;
const field = encodeURIComponent(project);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS });

function check(condition, text) {
  if (!condition) throw new Error(text);
}

async function context(scheme, width) {
  const made = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 900 } });
  return made;
}

// A browser context is a browser of its own, so one session is opened and its cookie copied.
const first = await context("light", 1200);
const page = await first.newPage();
const problems = [];
page.on("console", (it) => { if (it.type() === "error") problems.push(`${page.url()}: ${it.text()}`); });
page.on("pageerror", (it) => problems.push(`${page.url()}: ${it}`));
await page.goto(link);
await page.waitForURL(`${root}/`);
check(!page.url().includes("token"), "the address keeps the token");
const cookies = await first.cookies();
check(cookies.length === 1 && cookies[0].httpOnly && cookies[0].sameSite === "Strict", JSON.stringify(cookies));
check((await page.evaluate(() => document.cookie)) === "", "scripts read the cookie");
await page.waitForFunction(() => document.getElementById("live").textContent === "Live");

const decisions = await first.newPage();
await decisions.goto(`${root}/decisions`);
const ofRule = "main td a[href^='/decision?']";
const call = await decisions.locator(ofRule).filter({ hasText: "rm_recursive" }).first().getAttribute("href");
const stop = await decisions.locator("main tr", { hasText: "stop blocked" }).locator("a[href^='/decision?']").first()
  .getAttribute("href");
await decisions.close();
const pages = {
  projects: "/", project: `/project?project=${field}`, decisions: "/decisions", call, stop, rules: "/rules",
  breakers: "/breakers", waiting: "/waiting", playground: "/playground", runs: "/runs", run: `/run?project=${field}&id=r1`,
};

// Every page: accessibility, no request to another host, no horizontal scrolling of the page, a heading.
for (const [scheme, width] of [["light", 1200], ["dark", 1200], ["light", 380]]) {
  const own = await context(scheme, width);
  await own.addCookies(cookies);
  const looked = await own.newPage();
  looked.on("request", (it) => check(it.url().startsWith(root), `a page loads ${it.url()}`));
  looked.on("console", (it) => { if (it.type() === "error") problems.push(`${looked.url()}: ${it.text()}`); });
  for (const [name, address] of Object.entries(pages)) {
    await looked.goto(root + address);
    // Axe is evaluated by the debugger, which the content policy of the page does not concern.
    await (await own.newCDPSession(looked)).send("Runtime.evaluate", { expression: axe });
    const found = await looked.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"] }));
    const violations = found.violations.map((it) => `${it.id}: ${it.nodes.map((node) => node.html).join(" | ")}`);
    check(violations.length === 0, `${name}, ${scheme}, ${width}: ${violations.join("\n")}`);
    check(found.passes.length > 5, `${name}: axe checked nothing`);
    const wide = await looked.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    check(wide <= 0, `${name}, ${width}: the page scrolls sideways by ${wide}`);
    if (screenshots) {
      const file = path.join(screenshots, `${name}-${scheme}-${width}.jpg`);
      await looked.screenshot({ path: file, type: "jpeg", quality: 60, fullPage: false });
    }
  }
  await own.close();
}

// The keyboard alone reaches the content and each section.
await page.goto(`${root}/`);
await page.keyboard.press("Tab");
check((await page.evaluate(() => document.activeElement.textContent)) === "Skip to the content", "the first stop of the keyboard");
await page.keyboard.press("Enter");
// The browser moves the focus after it has answered the key.
const focused = (id) => page.waitForFunction((it) => document.activeElement.id === it, id, { timeout: 10_000 });
await focused("main");

// A change arrives without a reload.
await page.goto(`${root}/waiting`);
await page.waitForFunction(() => document.getElementById("live").textContent === "Live");
await page.evaluate(() => { window.marker = 1; document.getElementById("main").focus(); });
const home = process.env.POLICYD_HOME;
const env = { PATH: process.env.PATH, HOME: path.join(home, "home"), XDG_CONFIG_HOME: path.join(home, "config"),
  XDG_CACHE_HOME: path.join(home, "cache"), XDG_STATE_HOME: path.join(home, "state") };
const policyd = (...words) =>
  execFileSync(process.env.POLICYD_BINARY, words, { cwd: project, env, encoding: "utf8" });
policyd("escalation", "open", "--gate", "deploy", "--reason", "May I deploy on Friday?", "--severity", "high");
await page.getByText("May I deploy on Friday?").first().waitFor();
check(await page.evaluate(() => window.marker === 1), "the page was loaded again");
await focused("main");

// A question is answered on the first screen of a phone, and the page confirms it.
const phone = await browser.newContext({ viewport: { width: 390, height: 844 } });
await phone.addCookies(cookies);
const small = await phone.newPage();
await small.goto(`${root}/`);
const question = small.locator("article", { hasText: "May I deploy on Friday?" });
const reject = question.getByRole("button", { name: "Reject" });
// A change of the page replaces the button while it is measured.
let box = null;
for (let attempt = 0; attempt < 10 && !box; attempt += 1) {
  await reject.waitFor();
  box = await reject.boundingBox();
}
check(box.y + box.height <= 844, `the button is at ${box.y}`);
if (screenshots) await small.screenshot({ path: path.join(screenshots, "phone.jpg"), type: "jpeg", quality: 60 });
await question.getByLabel("Your decision").fill("Wait until Monday");
await reject.click();
await small.getByText("Your answer is recorded.").waitFor();
check(new URL(small.url()).pathname === "/", small.url());
check((await small.locator("article", { hasText: "May I deploy on Friday?" }).count()) === 0, "the question is answered");
await phone.close();
const answered = policyd("escalation", "list", "--all", "--format", "json").trim().split("\n").map((it) => JSON.parse(it));
check(answered.some((it) => it.status === "rejected" && it.decision === "Wait until Monday"), JSON.stringify(answered));

// A false alarm becomes a draft.
await page.goto(root + call);
await page.getByRole("button", { name: "This was wrong" }).click();
await page.getByText("Draft of a case").first().waitFor();

// Filters work without the script, too.
const plain = await browser.newContext({ javaScriptEnabled: false });
await plain.addCookies(cookies);
const simple = await plain.newPage();
await simple.goto(`${root}/decisions`);
await simple.getByLabel("Outcome").selectOption("blocked_call");
await simple.getByRole("button", { name: "Filter" }).click();
check((await simple.locator("tbody tr", { hasText: "stop blocked" }).count()) === 0, "the filter");
check((await simple.locator("tbody tr", { hasText: "rm_recursive" }).count()) === 1, "the filter");

// Another site can neither show the dashboard nor send its forms.
const other = await first.newPage();
await other.route("http://other.example/*", (it) => it.fulfill({ contentType: "text/html",
  body: `<iframe src="${root}/"></iframe><form method="post" action="${root}/task"><button>Send</button></form>` }));
await other.goto("http://other.example/");
const frame = other.frames().find((it) => it !== other.mainFrame());
check(!(await frame.content().catch(() => "")).includes("policyd</a>"), "another site shows the dashboard");
await other.getByRole("button", { name: "Send" }).click();
await other.waitForURL(`${root}/task`);
await other.waitForLoadState();
check(!(await other.content()).includes("Waiting"), "another site is signed in");

await browser.close();
check(problems.length === 0, problems.join("\n"));
