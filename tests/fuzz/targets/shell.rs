//! A command line: reading it ends, what is quoted is data, and `eval` of it starts the same
//! programs.

use policyd::facts::call::{AnalysisContext, Call, CallEnvironment, Invocation, NoDisk};
use policyd::facts::compiled::CompiledMatchers;
use policyd::policy::{Policy, builtin, load};
use serde_json::json;

struct Known {
    policy: Policy,
    lens: CompiledMatchers,
}

thread_local! {
    static KNOWN: Known = {
        let pack = builtin::pack();
        let policy = load::load(&pack, &pack).policy.expect("the built-in pack loads");
        let lens = CompiledMatchers::new(policy.lens.clone());
        Known { policy, lens }
    };
}

fn read(command: &str) -> Call {
    let around = CallEnvironment {
        folder: "/work".to_owned(),
        project: "/work".to_owned(),
        home: "/home/dev".to_owned(),
        ..CallEnvironment::default()
    };
    KNOWN.with(|known| {
        let knowledge = &*known.policy.guards.knowledge;
        let reading =
            AnalysisContext { lens: &known.lens, knowledge, around: &around, disk: &NoDisk };
        Call::read("Bash", &json!({ "command": command }), reading)
    })
}

pub(super) fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if text.contains('\0') || text.len() > 4_000 {
        return;
    }
    let own = read(text);
    assert_eq!(own, read(text), "read twice, understood twice");
    let quoted = format!("'{}'", text.replace('\'', r"'\''"));
    let data = read(&format!("printf %s {quoted}"));
    let names: Vec<&str> = data.programs.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["printf"], "what is quoted is data");
    assert!(data.is_understood(), "{:?}", data.unread);
    let handed = read(&format!("eval {quoted}"));
    if own.is_understood() && handed.is_understood() && !own.beyond && !handed.beyond {
        for program in &own.programs {
            let same = |it: &Invocation| it.name == program.name;
            assert!(handed.programs.iter().any(same), "`eval` hides `{}`", program.name);
        }
    }
}
