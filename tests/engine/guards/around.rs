//! What lies around a tool call: whose home it is, how full the context is.

use super::machine::{Machine, decision};
use serde_json::json;

const PROJECT: &str = "/home/dev/project";

#[test]
fn globs_of_the_home_hold_whatever_the_home_is_called() {
    for home in ["/home/dev", "/home/dev/", "/root", "/", ""] {
        let machine = Machine::new(PROJECT);
        machine.world.set_env("HOME", home);
        for line in ["echo x >> ~/.bashrc", "cat ~/.npmrc", "cat ~/.aws/credentials"] {
            assert_ne!(machine.bash(line).0, "", "{line} with the home {home:?}");
        }
        assert_eq!(machine.bash("cat ~/notes.txt").0, "", "with the home {home:?}");
    }
}

#[test]
fn a_disk_that_takes_both_cases_for_the_same_hides_no_file() {
    let lines = [
        "echo x > .CLAUDE/settings.json",
        "echo x >> .Policyd/policies/guards.yaml",
        "touch .DISABLED",
        "rm -rf .Claude",
        "cat ~/.AWS/Credentials",
        "cat .ENV",
        "rm -rf .G*",
        "cd .CLAUDE && echo x > Settings.json",
    ];
    for home in ["/home/dev", "/Users/Dev"] {
        let machine = Machine::new(PROJECT);
        machine.world.set_env("HOME", home);
        for line in lines {
            assert_eq!(machine.bash(line).0, "", "{line} on a disk that tells them apart");
        }
        machine.world.fold_case();
        for line in lines {
            assert_eq!(machine.bash(line).0, machine.bash(&line.to_lowercase()).0, "{line}");
            assert_ne!(machine.bash(line).0, "", "{line}");
        }
        for line in ["cat README.MD", "echo x > Src/Main.RS", "cat .ENV.EXAMPLE", "rm -rf Build"] {
            assert_eq!(machine.bash(line).0, "", "{line}");
        }
    }
}

#[test]
fn a_folder_that_does_not_exist_leads_nowhere_else() {
    let machine = Machine::new(PROJECT);
    machine.world.put(format!("{PROJECT}/src/a.rs"), "x");
    let guards = [
        "- {id: rest, unless: 'action.changes([\"src/**\"])', when: 'action.changes([\"/**\"])', \
         decision: deny, message: No.}\n",
        "- {id: rest, when: 'action.changes([\"/**\", \"!src/**\"])', decision: deny, message: No.}\n",
    ];
    for guard in guards {
        machine.guards(guard);
        let write = |path: &str| {
            let input = json!({"file_path": path, "content": "x"});
            let line = format!("echo x > {path}");
            [machine.tool("Write", &input).0, machine.bash(&line).0]
        };
        for path in ["src/a.rs", "src/new/b.rs", "src/none/../b.rs", "other/../src/b.rs"] {
            assert_eq!(write(path), ["", ""], "{path}");
            assert_eq!(write(&format!("{PROJECT}/{path}")), ["", ""], "{path}");
        }
        for path in [
            "x",
            "src/../x",
            "src/none/../../x",
            "src/none/deep/../../../x",
            "src/a/b/c/d/e/f/g/h/i/../../../../../../../../../../x",
            "src/none/../../../other/x",
            "src/none/./.././../x",
        ] {
            assert_eq!(write(path), ["deny", "deny"], "{path}");
            assert_eq!(write(&format!("{PROJECT}/{path}")), ["deny", "deny"], "{path}");
        }
    }
}

#[test]
fn a_home_among_temporary_files_is_a_home() {
    for home in ["/tmp/h", "/var/tmp/u"] {
        let machine = Machine::new(PROJECT);
        machine.world.set_env("HOME", home);
        for line in ["rm -rf ~", "rm -rf ~/*", "rm -rf $HOME/[a-z]*", "rm -rf ~/notes"] {
            assert_eq!(machine.bash(line).0, "deny", "{line} with the home {home:?}");
        }
        assert_eq!(machine.bash("rm -rf /tmp/scratch").0, "", "with the home {home:?}");
    }
}

#[test]
fn a_folder_outside_of_the_project_is_as_much_as_one() {
    let machine = Machine::new(PROJECT);
    machine.world.set_env("CLAUDE_PROJECT_DIR", PROJECT);
    let decided = |folder: &str, line: &str| {
        let payload = json!({
            "session_id": "s", "cwd": folder, "hook_event_name": "PreToolUse",
            "permission_mode": "default", "tool_name": "Bash", "tool_input": {"command": line},
        });
        decision(&machine.answer(&payload)).0
    };
    for line in ["rm -rf *", "rm -rf .", "find . -delete", "rm -rf /srv/other"] {
        assert_eq!(decided("/srv/other", line), "deny", "{line}");
    }
    assert_eq!(decided("/srv/other", "rm -rf build"), "");
    // Below the project, and in folders for temporary files, everything may go.
    for folder in ["/home/dev/project/build", "/tmp/build"] {
        assert_eq!(decided(folder, "rm -rf *"), "", "in {folder}");
    }
}

#[test]
fn a_guard_alone_may_ask_how_full_the_context_is_also_of_what_cannot_be_known() {
    let machine = Machine::new(PROJECT);
    let guard = |commands: &str, when: &str| {
        format!(
            "- id: own\n  {commands}when: {when}\n  decision: ask\n  on_error: ask\n  message: x\n"
        )
    };
    machine.guards(&guard("commands: [deployit]\n  ", "context.compactions == 0"));
    for (line, expected) in [("deployit now", "ask"), ("$X now", "ask"), ("ls", "")] {
        assert_eq!(machine.bash(line).0, expected, "{line}");
    }
    machine.world.put("/home/dev/rules/policyd.yaml", "extends: []\n");
    machine.guards(&guard("", "context.compactions > 0"));
    assert_eq!(machine.bash("ls"), (String::new(), String::new()));
}
