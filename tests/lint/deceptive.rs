//! What lint says of what looks like something else than it is: regular expressions, names with signs of
//! patterns, letters of options.

use crate::subjects::{check, check_made};

#[test]
fn what_looks_like_something_else_is_told() {
    let guard = |it: &str| {
        format!(
            "- id: own\n  commands: [git commit]\n  when: '{it}'\n  decision: deny\n  message: No.\n"
        )
    };
    check_made(
        ("guards.yaml", guard),
        "PD319",
        &[
            (
                "session.branch.matches(\"^feat/|fix/\")",
                "`^` applies only to the first alternative",
            ),
            ("session.branch.matches(\"feat-|fix-$\")", "`$` applies only to the last alternative"),
            ("action.command.matches(\"^FAIL|panic\")", ""),
            ("session.branch.matches(\"[^ok|PASS]\")", ""),
            ("session.branch.matches(\"^[feat|fix]/\")", "`[feat|fix]` matches a single character"),
            ("session.branch.matches(\"^feat/*\")", "`/*` matches any number of `/`"),
            ("session.branch.matches(\"^(feat|fix)/\")", ""),
            ("session.branch.matches(\"^feat/|^fix/\")", ""),
            ("session.branch.matches(\"^main$|fix/\")", ""),
            ("session.branch.matches(\"[a|b]x\")", ""),
            ("session.branch.matches(\"^feat/.*\")", ""),
        ],
    );
    check_made(
        ("guards.yaml", guard),
        "PD315",
        &[
            ("session.branch == \"main|master\"", "`main|master` is compared literally"),
            ("event.permission_mode == \"plan|auto\"", "is compared literally"),
            ("action.programs.any_in([\"python*\"])", "`python*` is compared literally"),
            ("tools.count(\"mcp__github__*\") > 0", "is compared literally"),
            ("action.programs.any_in([\"python\"])", ""),
            ("session.branch == \"main\"", ""),
        ],
    );
    check_made(
        ("guards.yaml", guard),
        "PD307",
        &[
            ("action.changes([\"src/**/*.{ts, tsx}\"])", "` tsx` in braces starts or ends"),
            ("action.changes([\"!src/**\"])", "all of these globs are exclusions"),
            ("action.changes([\"**/*.{ts,tsx}\", \"!src/**\"])", ""),
        ],
    );
    check_made(
        ("guards.yaml", guard),
        "PD313",
        &[
            ("program.has([\"-am\"])", "`-am` matches only this exact spelling"),
            ("program.has([\"-a\"]) && program.has([\"-m\"])", ""),
            ("program.has([\"-vv\"])", ""),
        ],
    );
    check_made(
        ("guards.yaml", guard),
        "PD241",
        &[
            ("program.name == \"yarn\"", "`own` does not apply to the program `yarn`"),
            ("program.name == \"git\"", ""),
            ("program.name == \"\"", ""),
        ],
    );
    let java = "- id: own\n  commands: [java]\n  when: 'program.has([\"-jar\"])'\n  decision: deny\n  message: No.\n";
    check("guards.yaml", "PD313", &[(java, "")]);
    let first = |it: &str| format!("prompt:\n  - {{id: own, when: {it}, text: Look.}}\n");
    check_made(
        ("run.yaml", first),
        "PD601",
        &[("run.iteration == 0", "this is never true"), ("run.iteration == 1", "")],
    );
    check(
        "guards.yaml",
        "PD232",
        &[("- {id: own, commands: [npm instal, sql], decision: deny, message: No.}\n", "")],
    );
}
