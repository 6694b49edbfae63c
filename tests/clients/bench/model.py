"""The scripted model: answers the Anthropic Messages, OpenAI Responses, and Gemini APIs from a scenario.

A turn is one answer. Short forms: {"text"}, {"text", "tool", "input"}, and {"text", "sh"}, a shell command that is sent
to the shell tool of the API's client. Long form: {"content": [blocks]}; a tool block with "custom": true has a text as
input (Codex: apply_patch, exec). Optional: "usage", "delay_s", and {"http_status", "error"} for a failed request.
After the last turn, the last one is repeated unless the scenario has "repeat_last": false.
"""
import json
import re
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = {"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
SECRET_HEADER = re.compile(r"authorization|api-?key|token|cookie", re.I)
SIDE_MODEL = re.compile("haiku|flash-lite", re.I)
SHELL_TOOL = {
    "anthropic": lambda command: ("Bash", {"command": command, "description": "run a command"}),
    "openai": lambda command: ("exec_command", {"cmd": command}),
    "gemini": lambda command: ("run_shell_command", {"command": command}),
}


def unique(prefix):
    return prefix + uuid.uuid4().hex[:24]


def flatten(content):
    """All text of a message content in the shape of any API."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(flatten(item) for item in content)
    if isinstance(content, dict):
        return "\n".join(flatten(content[key]) for key in ("text", "content", "parts", "output") if key in content)
    return ""


class Model:
    """A server for one scenario. `requests` has every request body, in order."""

    def __init__(self, scenario, latency=0.0):
        self.scenario, self.latency = scenario, latency
        self.requests, self.positions, self.lock = [], {}, threading.Lock()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.model = self
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_error):
        self.server.shutdown()
        self.server.server_close()

    def record(self, **request):
        with self.lock:
            self.requests.append(request)

    def next_turn(self, api, messages, has_tools, name, body):
        """The route and the turn for a request. Side calls (titles, summaries) get a fixed text."""
        route, turns = self.route(messages)
        if route == "main" and (not has_tools or SIDE_MODEL.search(name or "")):
            return "side", {"content": [{"type": "text", "text": "ok"}]}
        with self.lock:
            position = self.positions.get(route, 0)
            self.positions[route] = position + 1
        if position >= len(turns) and not self.scenario.get("repeat_last", True):
            return route, {"content": [{"type": "text", "text": "(script exhausted)"}]}
        return route, expand(fill(turns[min(position, len(turns) - 1)], body), api)

    def route(self, messages):
        """The turns of a conversation: its first user message can select a route (subagents)."""
        begins = "\n".join(flatten(message) for message in messages[:4] if message.get("role") in ("user", None))
        for route in self.scenario.get("routes", []):
            if route["match"] in begins:
                return route["name"], route["turns"]
        return "main", self.scenario["turns"]


def expand(turn, api):
    """The turn with its content as blocks."""
    turn = dict(turn)
    if "sh" in turn:
        turn["tool"], turn["input"] = SHELL_TOOL[api](turn.pop("sh"))
    if "content" not in turn:
        text = [{"type": "text", "text": turn["text"]}] if turn.get("text") is not None else []
        tool = [{"type": "tool_use", "name": turn["tool"], "input": turn.get("input", {})}] if turn.get("tool") else []
        turn["content"] = text + tool
    return turn


def fill(turn, body):
    """Replaces @SESSION@ (Codex: a running command), @BGID@, and @BGFILE@ (Claude Code: a background task and its
    output file) with the newest value in the request."""
    text = json.dumps(turn)
    if not re.search("@SESSION@|@BGID@|@BGFILE@", text):
        return turn
    sent = json.dumps(body)

    def newest(pattern, default):
        return (re.findall(pattern, sent) or [default])[-1]

    text = text.replace('"@SESSION@"', newest(r"session ID (\d+)", "0"))
    text = text.replace("@BGID@", newest(r"(?:with ID: |task_id>|backgroundTaskId[^a-z0-9]+)([a-z0-9_]+)", "none"))
    return json.loads(text.replace("@BGFILE@", newest(r"written to: (\S+?\.output)", "none")))


def smallest(schema):
    """The smallest value of a JSON schema, for side calls that require structured output."""
    if not isinstance(schema, dict):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object")
    kind = (kind[0] if isinstance(kind, list) else kind).lower()
    if kind == "object":
        return {name: smallest(inner) for name, inner in (schema.get("properties") or {}).items()}
    return {"array": [], "string": "none", "number": 0, "integer": 0, "boolean": False}.get(kind)


# ---- Anthropic Messages

def anthropic_message(turn, model):
    content = [dict(block) for block in turn["content"]]
    for block in content:
        if block["type"] == "tool_use":
            block.setdefault("id", unique("toolu_01"))
    uses_tool = any(block["type"] == "tool_use" for block in content)
    return {
        "id": unique("msg_01"), "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": "tool_use" if uses_tool else "end_turn", "stop_sequence": None,
        "usage": {**USAGE, **turn.get("usage", {})},
    }


def anthropic_events(message):
    usage = dict(message["usage"], output_tokens=1)
    yield {"type": "message_start", "message": dict(message, content=[], stop_reason=None, usage=usage)}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": message["usage"]}
    yield {"type": "message_stop"}


# ---- OpenAI Responses

def response_item(block):
    if block["type"] == "text":
        content = [{"type": "output_text", "text": block["text"], "annotations": []}]
        return {"type": "message", "id": unique("msg_"), "role": "assistant", "status": "completed", "content": content}
    call = {"call_id": unique("call_"), "name": block["name"], "status": "completed"}
    if block.get("custom"):
        return {"type": "custom_tool_call", "id": unique("ctc_"), "input": block["input"], **call}
    return {"type": "function_call", "id": unique("fc_"), "arguments": json.dumps(block["input"]), **call}


def response(turn, model):
    usage = {**USAGE, **turn.get("usage", {})}
    sent, answered = usage["input_tokens"], usage["output_tokens"]
    return {
        "id": unique("resp_"), "object": "response", "created_at": int(time.time()), "status": "completed",
        "model": model, "output": [response_item(block) for block in turn["content"]],
        "usage": {
            "input_tokens": sent, "input_tokens_details": {"cached_tokens": usage["cache_read_input_tokens"]},
            "output_tokens": answered, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": sent + answered,
        },
    }


def response_events(whole):
    yield {"type": "response.created", "response": dict(whole, status="in_progress", output=[], usage=None)}
    for index, item in enumerate(whole["output"]):
        started = dict(item, status="in_progress")
        if item["type"] == "message":
            started["content"] = []
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
        if item["type"] == "message":
            yield {"type": "response.output_text.delta", "item_id": item["id"], "output_index": index,
                   "content_index": 0, "delta": item["content"][0]["text"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


# ---- Gemini

def gemini_answer(turn, model):
    parts = [
        {"text": block["text"]} if block["type"] == "text"
        else {"functionCall": {"name": block["name"], "args": block["input"], "id": unique("fc")}}
        for block in turn["content"]
    ]
    usage = {**USAGE, **turn.get("usage", {})}
    sent, answered = usage["input_tokens"], usage["output_tokens"]
    return {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": sent, "candidatesTokenCount": answered, "totalTokenCount": sent + answered},
        "modelVersion": model, "responseId": uuid.uuid4().hex,
    }


class Handler(BaseHTTPRequestHandler):
    """One connection of a client."""

    protocol_version = "HTTP/1.1"
    server_version = "scripted-model"

    def log_message(self, *_arguments):
        pass

    def handle_request(self):
        raw = self.read_body()
        try:
            body = json.loads(raw) if raw else {}
        except ValueError:
            body = {}
        try:
            self.answer(self.path.split("?")[0], body if isinstance(body, dict) else {})
        except (BrokenPipeError, ConnectionResetError):
            pass  # the client closed the connection

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = handle_request

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        whole = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0].strip() or b"0", 16)
            if size == 0:
                while self.rfile.readline().strip():
                    pass
                return whole
            whole += self.rfile.read(size)
            self.rfile.readline()

    def answer(self, path, body):
        is_post = self.command == "POST"
        gemini = re.search(r"/models/([^/:]+):(\w+)$", path)
        if is_post and path.endswith("/messages/count_tokens"):
            self.send_json({"input_tokens": max(1, len(json.dumps(body)) // 4)})
        elif is_post and path.endswith("/v1/messages"):
            self.answer_anthropic(body)
        elif is_post and path.endswith("/responses"):
            self.answer_openai(body)
        elif is_post and gemini:
            self.answer_gemini(body, *gemini.groups())
        elif path.endswith("/models") and self.command == "GET":
            self.send_json({"data": [], "object": "list", "has_more": False, "models": []})
        else:
            self.send_json({})

    def turn(self, api, messages, has_tools, name, body):
        """The next turn; nothing if it is an error, which is then sent."""
        model = self.server.model
        route, turn = model.next_turn(api, messages, has_tools, name, body)
        headers = {key: "<redacted>" if SECRET_HEADER.search(key) else value for key, value in self.headers.items()}
        model.record(api=api, route=route, path=self.path, headers=headers, body=body)
        time.sleep(model.latency + turn.get("delay_s", 0))
        if not turn.get("http_status"):
            return route, turn
        self.send_json(turn.get("error") or {"type": "error", "error": {"type": "api_error"}}, turn["http_status"])
        return route, None

    def answer_anthropic(self, body):
        _, turn = self.turn("anthropic", body.get("messages", []), bool(body.get("tools")), body.get("model"), body)
        if turn:
            message = anthropic_message(turn, body.get("model"))
            self.send(message, anthropic_events(message), body.get("stream"))

    def answer_openai(self, body):
        items = [item for item in body.get("input", []) if isinstance(item, dict)]
        # In code mode, the tools are an input item.
        has_tools = bool(body.get("tools")) or any(item.get("type") == "additional_tools" for item in items)
        users = [item for item in items if item.get("role") == "user"]
        _, turn = self.turn("openai", users, has_tools, body.get("model"), body)
        if turn:
            whole = response(turn, body.get("model"))
            self.send(whole, response_events(whole), body.get("stream"))

    def answer_gemini(self, body, name, verb):
        if verb == "countTokens":
            return self.send_json({"totalTokens": 100})
        route, turn = self.turn("gemini", body.get("contents", []), bool(body.get("tools")), name, body)
        config = body.get("generationConfig") or {}
        schema = config.get("responseJsonSchema") or config.get("responseSchema")
        if turn and route == "side" and schema:
            turn = {"content": [{"type": "text", "text": json.dumps(smallest(schema))}]}
        if turn:
            whole = gemini_answer(turn, name)
            self.send(whole, [whole], verb == "streamGenerateContent", named=False)

    def send(self, whole, events, is_stream, named=True):
        if not is_stream:
            return self.send_json(whole)
        self.send_response(200)
        for name, value in (("content-type", "text/event-stream"), ("cache-control", "no-cache"),
                            ("request-id", unique("req_")), ("transfer-encoding", "chunked")):
            self.send_header(name, value)
        self.end_headers()
        for event in events:
            name = "event: %s\n" % event["type"] if named else ""
            chunk = ("%sdata: %s\n\n" % (name, json.dumps(event))).encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def send_json(self, value, status=200):
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("request-id", unique("req_"))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
