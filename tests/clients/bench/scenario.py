"""Scenarios: loading, and the evaluation of their checks.

Checks are Python expressions: run only scenarios that you trust."""
import json
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "scenarios")


def load_all(clients, pattern):
    """The scenarios of these clients whose file name matches, with their names, sorted."""
    found = []
    for file_name in sorted(os.listdir(FOLDER)):
        if not re.search(pattern, file_name):
            continue
        with open(os.path.join(FOLDER, file_name)) as file:
            scenario = json.load(file)
        if scenario["client"] in clients:
            found.append((file_name[:-len(".json")], scenario))
    return found


def answer(call):
    """The JSON object that a hook printed; empty without output or for invalid JSON."""
    try:
        return json.loads(call.get("stdout") or "{}") or {}
    except ValueError:
        return {}


def verdict(call):
    """What the hook requested: `block`, `ask`, `allow`, `stop`, `none`, or `error`."""
    said = answer(call)
    decision = (said.get("decision") or said.get("permissionDecision")
                or (said.get("hookSpecificOutput") or {}).get("permissionDecision"))
    if not decision and said.get("continue") is False:
        decision = "stop"
    return {"deny": "block"}.get(decision, decision) or ("error" if call.get("exit") else "none")


def notice(call):
    """What the hook shows to the user."""
    said = answer(call)
    return said.get("systemMessage") or said.get("notice") or ""


def reason(call):
    return answer(call).get("reason") or ""


def tool_call(call):
    """The command in the payload before a tool, or the whole input as JSON."""
    payload = call.get("payload") or {}
    tool_input = payload.get("tool_input") or payload.get("toolArgs") or payload.get("input") or {}
    if isinstance(tool_input, str):
        try:
            tool_input = json.loads(tool_input)
        except ValueError:
            return tool_input
    return tool_input.get("command") or tool_input.get("cmd") or json.dumps(tool_input)


def names(run, client, requests, calls):
    """The names that checks can use."""
    body = [json.dumps(it["body"], ensure_ascii=False) for it in requests if it["route"] == "main"]

    def event(name):
        return [call for call in calls if call["event"] == client.events.get(name, name)]

    def sent(text):
        """The indexes of the requests that contain the text."""
        quoted = json.dumps(text, ensure_ascii=False)[1:-1]
        return [index for index, request in enumerate(body) if text and quoted in request]

    stops = event("stop")
    metrics = {
        "stop_calls": len(stops), "stop_blocks": sum(verdict(call) == "block" for call in stops),
        "stop_hook_active": [(call.get("payload") or {}).get("stop_hook_active") for call in stops],
    }
    return {
        "sc": run.scenario, "client": client.name, "out": run.folder, "hooks": calls, "stops": stops, "ev": event,
        "m": metrics, "main": body, "body": body, "sent": sent, "verdict": verdict, "answer": answer,
        "notice": notice, "reason": reason, "asked": {tool_call(call): verdict(call) for call in event("pre_tool")},
        "os": os, "json": json, "re": re,
    }


def evaluate(checks, context):
    """Returns the failed checks, each with the observed value."""
    failed = []
    for check in checks:
        try:
            if eval(check["expr"], dict(context)):
                continue
            seen = repr(eval(check["saw"], dict(context)))[:400] if check.get("saw") else ""
        except Exception as error:  # a check may fail in any way
            seen = "%s: %s" % (type(error).__name__, error)
        failed.append({"name": check["name"], "seen": seen})
    return failed
