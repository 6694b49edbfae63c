#!/usr/bin/env python3
"""Runs the scenarios with the installed clients and a scripted model, one after the other.

Exit code: 0 if every scenario passed, 1 if one failed or did not run, 2 for a usage error, 3 if no client is installed.
README.md in this folder explains the scenarios and the environment variables."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
from bench import scenario as scenarios  # noqa: E402
from bench.clients import CLIENTS, policyd, write_json  # noqa: E402
from bench.drivers import DRIVERS, TIMEOUTS  # noqa: E402
from bench.model import Model  # noqa: E402
from bench.run import Run  # noqa: E402


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", default="all", help="names, separated by commas (default: all installed clients)")
    parser.add_argument("--only", default="", metavar="REGEX", help="only scenarios whose file name matches")
    parser.add_argument("--latency", default="0", help="seconds before each model answer, e.g. 0,0.2,2")
    parser.add_argument("--install", action="store_true", help="install the clients with npm first")
    parser.add_argument("--list", action="store_true", help="print the clients and scenarios, run nothing")
    parser.add_argument("--table", metavar="FILE", help="write the results as a Markdown table")
    parser.add_argument("--out", metavar="DIR", help="folder for the runs (default: a temporary folder)")
    parser.add_argument("--keep", action="store_true", help="keep the clients' caches in the runs")
    arguments = parser.parse_args()
    named = list(CLIENTS) if arguments.client == "all" else arguments.client.split(",")
    if not set(named) <= set(CLIENTS):
        parser.error("--client: choose from " + ", ".join(CLIENTS))
    try:
        arguments.latencies = [float(it) for it in arguments.latency.split(",")]
    except ValueError:
        parser.error("--latency: expected numbers, separated by commas")
    arguments.clients = [CLIENTS[name] for name in named]
    return arguments


def run_scenario(name, scenario, latency, folder):
    """Runs one scenario. Returns its result as a dictionary."""
    client, driver = CLIENTS[scenario["client"]], scenario["driver"]
    timeout = scenario.get("timeout_s", TIMEOUTS[driver]) + latency * 3 * len(scenario["turns"])
    result = {"name": name, "client": client.name, "latency": latency, "folder": folder}
    began = time.time()
    try:
        run = Run(scenario, folder)
        with Model(run.scenario, latency) as model:
            code, timed_out, more = DRIVERS[driver](run, client, model, timeout)
        calls = run.calls()
        context = scenarios.names(run, client, model.requests, calls)
        context.update(rc=code, timed_out=timed_out, **more)
        failed = scenarios.evaluate(checks(run.scenario), context)
        write_json(folder + "/requests.json", model.requests)
        result.update(context["m"], exit=code)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        failed = [{"name": "the scenario did not run", "seen": "%s: %s" % (type(error).__name__, error)}]
    result.update(seconds=round(time.time() - began, 1), failed=failed)
    write_json(folder + "/result.json", result)
    return result


def checks(scenario):
    """The checks of a scenario, with those that its driver implies."""
    all_checks = list(scenario["checks"])
    if scenario["driver"] == "supervised":
        expected = scenario["expect_rc"] if isinstance(scenario["expect_rc"], list) else [scenario["expect_rc"]]
        expr = "rc in %r and not timed_out" % expected
        all_checks.insert(0, {"name": "exit code %s" % scenario["expect_rc"], "expr": expr, "saw": "(rc, timed_out)"})
        all_checks.append({"name": "no process is left", "expr": "not left", "saw": "left"})
    return all_checks


def table(results, versions, latencies):
    """The results as Markdown: one row per scenario, one column per latency."""
    lines = ["# Results with real clients", "", "%s, %s." % (time.strftime("%Y-%m-%d", time.gmtime()), versions["policyd"]),
             "", "| client | version |", "|---|---|"]
    lines += ["| %s | %s |" % (name, version) for name, version in versions.items() if name != "policyd"]
    lines += ["", "| scenario | " + " | ".join("%g s" % it for it in latencies) + " |", "|---|" + "---|" * len(latencies)]
    found = {(it["name"], it["latency"]): it for it in results}
    for name in sorted({it["name"] for it in results}):
        cells = []
        for latency in latencies:
            result = found[name, latency]
            cells.append("FAIL: " + "; ".join(it["name"] for it in result["failed"]) if result["failed"] else "pass")
        lines.append("| %s | %s |" % (name, " | ".join(cells)))
    return "\n".join(lines) + "\n"


def main():
    arguments = parse_arguments()
    if arguments.install:
        for client in arguments.clients:
            client.install()
    installed = [client for client in arguments.clients if client.is_installed()]
    if not installed:
        print("no client is installed: run with --install", file=sys.stderr)
        return 3
    version = subprocess.run([policyd(), "--version"], stdout=subprocess.PIPE, universal_newlines=True).stdout.strip()
    versions = {"policyd": version, **{client.name: client.installed_version() for client in installed}}
    for name, text in versions.items():
        print("%-9s %s" % (name, text))
    selected = scenarios.load_all([client.name for client in installed], arguments.only)
    if arguments.list or not selected:
        print("\n".join(name for name, _ in selected) or "no scenario matches")
        return 0 if selected else 2
    out = arguments.out or tempfile.mkdtemp(prefix="policyd-clients-")
    results = []
    for name, scenario in selected:
        for latency in arguments.latencies:
            folder = os.path.join(os.path.abspath(out), "%s-%g" % (name, latency))
            result = run_scenario(name, scenario, latency, folder)
            results.append(result)
            verdict = "FAIL" if result["failed"] else "pass"
            print("%-34s %4g s  %s %5.0f s" % (name, latency, verdict, result["seconds"]), flush=True)
            for check in result["failed"]:
                print("    %s: %s" % (check["name"], check["seen"]), flush=True)
            if not arguments.keep:
                for cache in CLIENTS[scenario["client"]].caches:
                    shutil.rmtree(os.path.join(folder, "home", cache), ignore_errors=True)
    if arguments.table:
        with open(arguments.table, "w") as file:
            file.write(table(results, versions, arguments.latencies))
    failures = sum(bool(it["failed"]) for it in results)
    print("%d passed, %d failed; runs: %s" % (len(results) - failures, failures, out))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
