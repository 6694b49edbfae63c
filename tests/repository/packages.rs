//! Packages: what `.packaging` makes of the programs can be installed and works; workflows, the action, the plugin,
//! and the pages that name a release agree with `Cargo.toml`.
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use policyd::source::{Source, yaml};
use regex::Regex;
use serde_json::Value;

use super::readme::{PROGRAM, pages, root};

const VERSION: &str = env!("CARGO_PKG_VERSION");
const PLUGIN: &str = ".claude-plugin/policyd";
/// An event that Claude Code 2.1.197 does not know. One unknown event keeps a plugin from loading.
const TOO_NEW: &str = "PostModelSwitch";
/// The permissions that jobs of the release may have besides reading.
const WRITING: [[&str; 2]; 5] = [
    ["attest", "attestations"],
    ["attest", "id-token"],
    ["github", "contents"],
    ["npm", "id-token"],
    ["pypi", "id-token"],
];

pub(super) fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned()).concat()
}

fn read_yaml(name: &str) -> Value {
    let text = fs::read_to_string(root().join(name)).unwrap();
    let (parsed, problems) = yaml::parse(&Arc::new(Source { name: name.to_owned(), text }));
    assert!(problems.is_empty(), "{name}: {problems:?}");
    parsed.unwrap().json()
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn workflows() -> Vec<String> {
    let folder = fs::read_dir(root().join(".github/workflows")).unwrap();
    let names = folder.map(|it| it.unwrap().file_name().into_string().unwrap());
    names.map(|it| format!(".github/workflows/{it}")).collect()
}

/// Reports what is skipped, and times, past the capture of test output.
fn report(line: &str) {
    std::io::stderr().write_all(format!("packages: {line}\n").as_bytes()).unwrap();
}

/// Whether Python is new enough to read `Cargo.toml`.
pub(super) fn has_python() -> bool {
    let found = Command::new("python3").args(["-c", "import tomllib"]).output();
    let is_usable = found.is_ok_and(|it| it.status.success());
    if !is_usable {
        report("skipped  what needs Python: python3 3.11 is absent");
    }
    is_usable
}

/// What an expression of Python over the modules of `.packaging` prints.
fn project(expression: &str) -> String {
    let code = format!(
        "import sys; sys.path.insert(0, '.packaging'); import formats, hook, io, pathlib, plugins, project, zipfile\n\
         print({expression})"
    );
    text(&python(&["-c", &code]))
}

fn python(arguments: &[&str]) -> Output {
    let mut command = Command::new("python3");
    command.arg("-B").args(arguments).current_dir(root()).env("SOURCE_DATE_EPOCH", "1700000000");
    command.output().unwrap()
}

/// Every file below a folder, by its path.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut found, mut folders) = (vec![], vec![folder.to_owned()]);
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(current).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.push((name, fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn check_bill_of_materials(bill: &Value) {
    assert_eq!(bill["bomFormat"], "CycloneDX");
    assert_eq!(bill["metadata"]["component"]["version"], VERSION);
    let components = bill["components"].as_array().unwrap();
    assert!(components.len() > 50, "{} components", components.len());
    for component in components {
        let purl = component["purl"].as_str().unwrap();
        assert!(purl.starts_with("pkg:cargo/"), "{purl}");
        assert_eq!(component["hashes"][0]["content"].as_str().unwrap().len(), 64, "{purl}");
        assert!(component["licenses"][0]["expression"].is_string(), "{purl}");
    }
}

#[test]
#[ignore = "second tier: package managers"]
fn packages_can_be_installed_and_used() {
    if !has_python() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["policyd", "policyd-tools"] {
        let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
        let copy = programs.join(&name);
        fs::copy(Path::new(PROGRAM).with_file_name(&name), &copy).unwrap();
        // Debug information is most of a program and would only slow the test.
        drop(Command::new("strip").arg(&copy).output());
    }
    let own = project("*(it.triple for it in project.TARGETS if it.node == project.PLATFORM)");
    let pair = format!("{}={}", own.trim(), programs.display());
    let outs = ["one", "two"].map(|it| folder.path().join(it));
    for out in &outs {
        let path = out.to_str().unwrap();
        let options = ["--partial", "--compression", "1", "--out", path, pair.as_str()];
        let made = python(&[[".packaging/build.py"].as_slice(), &options].concat());
        assert!(made.status.success(), "{}", text(&made));
    }
    let [one, two] = outs.each_ref().map(|it| contents(it));
    let names = |all: &[(String, Vec<u8>)]| all.iter().map(|it| it.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&one), names(&two));
    assert!(one == two, "two builds of the packages differ");
    let notes = fs::read_to_string(outs[0].join("notes/release.md")).unwrap();
    assert!(notes.starts_with("### ") && notes.contains("SHA256SUMS"), "{notes}");
    check_bill_of_materials(&read_json(&outs[0].join(format!("policyd-{VERSION}.cdx.json"))));
    let used = python(&[".packaging/try.py", outs[0].to_str().unwrap()]);
    assert!(used.status.success(), "{}", text(&used));
    let is_reported = |it: &&str| it.starts_with("skipped") || it.starts_with("time");
    text(&used).lines().filter(is_reported).for_each(report);
}

#[test]
#[cfg(unix)]
fn the_recording_shows_what_the_program_prints() {
    if !has_python() {
        return;
    }
    let recorded = python(&[".packaging/record.py", PROGRAM]);
    assert!(recorded.status.success(), "{}", text(&recorded));
    let path = root().join("src/docs/recording.svg");
    if std::env::var_os("POLICYD_REGEN").is_some() {
        fs::write(&path, &recorded.stdout).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let current = String::from_utf8(recorded.stdout).unwrap();
    assert!(
        written == current,
        "POLICYD_REGEN=1 cargo test --test repository recording writes src/docs/recording.svg"
    );
}

#[test]
fn a_release_has_every_target_and_the_version_of_its_tag() {
    if !has_python() {
        return;
    }
    let release = read_yaml(".github/workflows/release.yml");
    let steps = release["jobs"]["build"]["steps"].as_array().unwrap();
    let builds = steps.iter().find(|it| it["name"] == "build").unwrap()["run"].as_str().unwrap();
    assert!(builds.contains(".packaging/build.py --all"), "{builds}");
    let listed = text(&python(&[".packaging/project.py"]));
    let listed: BTreeSet<&str> = listed.lines().collect();
    let checked = fs::read_to_string(root().join(".deny.toml")).unwrap();
    let quoted = Regex::new(r#"^    "([a-z0-9_-]+)",$"#).unwrap();
    let checked = checked.lines().filter_map(|it| Some(quoted.captures(it)?.get(1)?.as_str()));
    assert_eq!(checked.collect::<BTreeSet<_>>(), listed, "targets of .deny.toml");
    let wrong = ["--out", "/nonexistent", "--tag", "v0.0.0", "x=y"];
    let refused = python(&[[".packaging/build.py"].as_slice(), &wrong].concat());
    assert!(!refused.status.success() && text(&refused).contains("v0.0.0"), "{}", text(&refused));
    let few = ["--out", "/nonexistent", "x86_64-apple-darwin=y"];
    let refused = python(&[[".packaging/build.py"].as_slice(), &few].concat());
    assert!(
        !refused.status.success() && text(&refused).contains("--partial"),
        "{}",
        text(&refused)
    );
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("policyd"), "").unwrap();
    let half = format!("x86_64-apple-darwin={}", folder.path().display());
    let half = ["--partial", "--out", "/nonexistent", half.as_str()];
    let refused = python(&[[".packaging/build.py"].as_slice(), &half].concat());
    assert!(
        !refused.status.success() && text(&refused).contains("policyd-tools"),
        "{}",
        text(&refused)
    );
}

/// The program of a test needs libraries of this machine, so a release refuses it.
#[test]
#[cfg(target_os = "linux")]
fn a_release_refuses_programs_that_cannot_start_elsewhere() {
    if !has_python() {
        return;
    }
    let check = |program: &Path, platform: &str| {
        project(&format!(
            "[formats.check(pathlib.Path({:?}), it) for it in project.TARGETS if it.node {platform}]",
            program.display()
        ))
    };
    let own = check(Path::new(PROGRAM), "== project.PLATFORM");
    assert!(own.contains("policyd needs /lib") && own.contains("not on each machine"), "{own}");
    let other = check(Path::new(PROGRAM), "[0] != 'linux'");
    assert!(other.contains("policyd needs /lib") || other.contains("is for"), "{other}");
    let script = check(&root().join(".ci/run"), "== project.PLATFORM");
    assert!(script.contains("run is not a program"), "{script}");
}

/// The order of the functions that ran on this processor holds for the other one, whose symbols have other hashes.
#[test]
fn hashes_of_symbols_do_not_count_for_the_order_of_functions() {
    if !has_python() {
        return;
    }
    let one = "_ZN7policyd4main17h0123456789abcdefE";
    let two = "_ZN7policyd4main17hfedcba9876543210E.llvm.42";
    let [one, two] = [one, two].map(|it| project(&format!("hook.plain('{it}')")));
    assert_eq!(one, two);
    assert_eq!(one.trim(), "_ZN7policyd4main");
}

#[test]
fn workflows_pin_actions_and_need_few_permissions() {
    let pinned = Regex::new(r"^[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+(\.\d+)+$").unwrap();
    for name in workflows().into_iter().chain([".github/actions/check/action.yml".to_owned()]) {
        let text = fs::read_to_string(root().join(&name)).unwrap();
        for action in text.lines().filter_map(|it| it.split_once("uses: ")).map(|it| it.1) {
            assert!(pinned.is_match(action), "{name}: {action}");
        }
    }
    for name in workflows() {
        let workflow = read_yaml(&name);
        assert!(workflow["permissions"].is_object(), "{name}: permissions");
        let mut writing = BTreeSet::from([]);
        for (job, body) in workflow["jobs"].as_object().unwrap() {
            assert!(body["timeout-minutes"].is_number(), "{name}: {job}: timeout-minutes");
            let permissions = body["permissions"].as_object().into_iter().flatten();
            for (permission, _) in permissions.filter(|it| it.1 == "write") {
                writing.insert([job.clone(), permission.clone()]);
            }
        }
        let expected = if name.ends_with("release.yml") { &WRITING[..] } else { &[] };
        let expected = expected.iter().map(|it| it.map(str::to_owned)).collect();
        assert_eq!(writing, expected, "{name}");
        assert_ne!(workflow["permissions"]["contents"], "write", "{name}");
    }
}

#[test]
fn the_action_runs_shell_steps_without_text_of_inputs() {
    let action = read_yaml(".github/actions/check/action.yml");
    assert_eq!(action["runs"]["using"], "composite");
    for step in action["runs"]["steps"].as_array().unwrap() {
        assert_eq!(step["shell"], "bash", "{step}");
        let command = step["run"].as_str().unwrap();
        assert!(!command.contains("${{"), "{command}");
    }
    for (name, input) in action["inputs"].as_object().unwrap() {
        assert!(input["description"].is_string() && input["default"].is_string(), "{name}");
    }
}

/// The arguments of each hook of a plugin, in the order of its file.
fn hooks(plugin: &Path) -> Vec<(String, Value)> {
    let hooks = read_json(&plugin.join("hooks/hooks.json"));
    let events = hooks["hooks"].as_object().unwrap();
    events
        .iter()
        .map(|(event, groups)| (event.clone(), groups[0]["hooks"][0]["args"].clone()))
        .collect()
}

#[test]
fn the_plugin_has_the_hooks_that_install_writes() {
    let written = tempfile::tempdir().unwrap();
    let installed =
        Command::new(PROGRAM).args(["install", "--plugin"]).arg(written.path()).output().unwrap();
    assert!(installed.status.success(), "{}", text(&installed));
    let mut expected = hooks(written.path());
    expected.retain(|it| it.0 != TOO_NEW);
    assert_eq!(hooks(&root().join(PLUGIN)), expected);
    let marketplace = read_json(&root().join(".claude-plugin/marketplace.json"));
    assert!(marketplace["owner"]["name"].is_string());
    let plugins = marketplace["plugins"].as_array().unwrap();
    assert_eq!(plugins.len(), 1);
    assert_eq!(plugins[0]["source"], format!("./{PLUGIN}"));
    let manifest = read_json(&root().join(PLUGIN).join(".claude-plugin/plugin.json"));
    assert_eq!(plugins[0]["name"], manifest["name"]);
    assert_eq!(manifest["repository"], env!("CARGO_PKG_REPOSITORY"));
    // Without a version, Claude Code updates the plugin at each commit.
    assert!(manifest.get("version").is_none() && plugins[0].get("version").is_none());
    if has_python() {
        let packed = project("zipfile.ZipFile(io.BytesIO(*plugins.plugin().values())).namelist()");
        let source = plugins[0]["source"].as_str().unwrap().trim_start_matches("./");
        for path in [".claude-plugin/marketplace.json", &format!("{source}/hooks/hooks.json")] {
            assert!(packed.contains(&format!("claude-code/{path}")), "{packed}");
        }
    }
}

#[test]
#[cfg(unix)]
fn the_plugin_is_quiet_without_policyd() {
    let home = tempfile::tempdir().unwrap();
    let hook = |event: &str, path: &str| {
        let script = root().join(PLUGIN).join("hooks/policyd.sh");
        let mut command = Command::new(script);
        command.args(["eval", "--hook", event]).env_clear().env("PATH", path);
        let output = command.env("HOME", home.path()).current_dir(home.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{event}: {}", text(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let absent: Value = serde_json::from_str(&hook("session-start", "/usr/bin:/bin")).unwrap();
    let message = absent["systemMessage"].as_str().unwrap();
    assert!(message.contains("npm install --global policyd"), "{message}");
    assert_eq!(hook("pre-tool-use", "/usr/bin:/bin"), "");
    assert_eq!(hook("stop", "/usr/bin:/bin"), "");
    let folder = Path::new(PROGRAM).parent().unwrap().display();
    let answer = hook("no-such-event", &format!("{folder}:/usr/bin:/bin"));
    assert!(answer.contains("no-such-event"), "policyd itself answers: {answer}");
}

#[test]
fn pages_pin_the_current_version() {
    let pin = Regex::new(r"(?:rev: |--tag |/check@|/download/|policyd[-_])v?(main|\d+\.\d+\.\d+)")
        .unwrap();
    let mut count = 0;
    for (path, page) in pages() {
        for found in pin.captures_iter(&page) {
            assert_eq!(&found[1], VERSION, "{}: {}", path.display(), &found[0]);
            count += 1;
        }
    }
    assert!(count >= 4, "{count} pins");
}
