"""The folder of one run: project, home, programs, and records. A run writes nothing outside its folder."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from .clients import policyd, write_json

MARK = ".policyd-client-run"  # a folder without this mark is never replaced
RECORDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorder.py")


class Run:
    def __init__(self, scenario, folder):
        self.folder = os.path.abspath(folder)
        if os.path.exists(self.folder):
            if not os.path.exists(os.path.join(self.folder, MARK)):
                raise SystemExit("%s exists and is not a run: name another folder" % self.folder)
            shutil.rmtree(self.folder)
        for name in ("project", "home", "bin", "rec", "tmp", "hooks"):
            os.makedirs(os.path.join(self.folder, name))
        open(os.path.join(self.folder, MARK), "w").close()
        self.project, self.home = self.folder + "/project", self.folder + "/home"
        text = json.dumps(scenario).replace("@OUT@", self.folder).replace("@PROJ@", self.project)
        self.scenario = json.loads(text)
        self.write(self.project, self.scenario.get("files", {}))
        self.write(self.home, self.scenario.get("home_files", {}))
        # Simulated programs, which come first in PATH.
        self.write(self.folder + "/bin", self.scenario.get("shims", {}), mode=0o755)

    @staticmethod
    def write(root, files, mode=0o644):
        for name, text in files.items():
            path = os.path.join(root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
            os.chmod(path, mode)

    def environment(self, **more):
        """A clean environment: only PATH is inherited."""
        path = os.pathsep.join([self.folder + "/bin", self.folder + "/rec", os.environ["PATH"]])
        config = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_CACHE_HOME": ".cache",
                  "XDG_STATE_HOME": ".local/state"}
        return {
            "PATH": path, "HOME": self.home, "LANG": "C.UTF-8", "TERM": "dumb", "TMPDIR": self.folder + "/tmp",
            "NO_PROXY": "127.0.0.1,localhost",
            # A stale .pyc hides a second edit of the same size in the same second.
            "PYTHONDONTWRITEBYTECODE": "1",
            **{name: os.path.join(self.home, folder) for name, folder in config.items()},
            **more, **self.scenario.get("env", {}),
        }

    def commit_project(self):
        who = {"GIT_%s_%s" % (role, key): value for role in ("AUTHOR", "COMMITTER")
               for key, value in (("NAME", "dev"), ("EMAIL", "dev@example.org"))}
        env = {"PATH": os.environ["PATH"], "HOME": self.home, **who}
        for command in (["init", "-q", "-b", "work"], ["add", "-A"], ["commit", "-qm", "start", "--allow-empty"]):
            subprocess.run(["git"] + command, cwd=self.project, env=env, check=True)

    def place_policyd(self):
        """Puts policyd at the path that `policyd install` writes into the hook lines."""
        place = self.folder + "/rec/policyd"
        try:
            os.link(policyd(), place)
        except OSError:
            shutil.copy(policyd(), place)
        return place

    def install_hooks(self, harness, env):
        """Runs `policyd install`, then replaces policyd with the recorder. Returns the real program."""
        program = self.folder + "/rec/policyd"
        subprocess.run([program, "install", "--harness", harness], cwd=self.project, env=env, check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        os.rename(program, program + ".real")
        with open(RECORDER) as file:
            text = file.read().replace("#!/usr/bin/env python3", "#!" + sys.executable, 1)
        self.write(self.folder + "/rec", {"policyd": text}, mode=0o755)
        self.write(self.folder + "/rec", {"records": self.folder + "/hooks"})
        return program + ".real"

    def calls(self):
        """The recorded hook calls, in order."""
        folder, found = self.folder + "/hooks", []
        for name in sorted(os.listdir(folder)):
            if name.endswith(".json"):
                with open(os.path.join(folder, name)) as file:
                    found.append(json.load(file))
        return found

    def start(self, command, env, name, **more):
        """Starts a program whose output goes to NAME.out and NAME.err."""
        write_json("%s/%s.command.json" % (self.folder, name), {"command": command, "env": env})
        with open("%s/%s.out" % (self.folder, name), "wb") as out, open("%s/%s.err" % (self.folder, name), "wb") as err:
            options = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err, **more}
            return subprocess.Popen(command, cwd=self.project, env=env, start_new_session=True, **options)

    def text(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""


def wait(process, seconds):
    """Waits, then terminates the process and its group. Returns whether the time was over."""
    try:
        process.wait(seconds)
        return False
    except subprocess.TimeoutExpired:
        return True
    finally:
        end(process)


def end(process):
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        until = time.time() + 5
        while process.poll() is None and time.time() < until:
            time.sleep(0.05)
