//! What lint says of options that no program takes, in guards, patterns, probes and the vocabulary.

use crate::subjects::check_made;

/// A guard with these lines, which refuses.
fn each(code: &str, situations: &[(&str, &str)]) {
    let guard = |lines: &str| format!("- id: own\n{lines}\n  decision: deny\n  message: Not so.\n");
    check_made(("guards.yaml", guard), code, situations);
}

#[test]
fn options_are_written_as_the_program_does() {
    let near = "did you mean `--namespace`?";
    each(
        "PD232",
        &[
            ("  commands: [kubectl delete]\n  when: program.has([\"--namepsace\", \"-n\"])", near),
            ("  commands: [kubectl]\n  when: program.value(\"--naemspace\") == \"prod\"", near),
            ("  commands: [kubectl]\n  when: program.value(`--naemspace`) == \"prod\"", near),
            ("  commands: [kubectl]\n  when: program.value(\"--namespace\") == \"prod\"", ""),
            ("  commands: [git]\n  when: program.has([\"--worktree\", \"--work-tree\"])", ""),
            ("  commands: [git branch]\n  when: program.has([\"--merge\"])", ""),
            (
                "  commands: [git push]\n  when: program.has([\"--froce\"])",
                "did you mean `--force`?",
            ),
            (
                "  commands: [git push]\n  when: program.has([\"--forc\"])",
                "did you mean `--force`?",
            ),
            ("  commands: [git commit]\n  when: program.has([\"--no-verfy\"])", "`--no-verify`"),
            ("  commands: [git commit]\n  when: program.has([\"--no-verify\"])", ""),
            ("  commands: [git push --forec]", "did you mean `--force`?"),
            (
                "  commands: [pytest]\n  when: program.has([\"--junitxml\", \"--cov\", \"--no-cov\"])",
                "",
            ),
            ("  commands: [docker compose]\n  when: program.has([\"--rmi\"])", ""),
            ("  commands: [git lfs]\n  when: program.has([\"--unit\"])", ""),
            ("  commands: [gh]\n  when: program.has([\"--parents\"])", ""),
            ("  commands: [kubectl]\n  when: program.has([\"--v\"])", ""),
            ("  commands: [\"npm test -- --ci\"]", ""),
            ("  commands: [\"docker run --priviledged\"]", "did you mean `--privileged`?"),
            ("  commands: [\"docker run --rm image tool --lst\"]", ""),
            // Of an unknown program nothing is known but what the vocabulary says.
            ("  commands: [own]\n  when: program.has([\"--froce\"])", ""),
            ("  commands: [kubectl, own]\n  when: program.has([\"--namepsace\"])", ""),
            ("  when: program.has([\"--namepsace\"])", ""),
        ],
    );
}

#[test]
fn options_of_probes_and_of_the_vocabulary_are_looked_at() {
    let probe = |it: &str| format!("- id: own\n  command: {it}\n  timeout: 5s\n");
    check_made(
        ("probes.yaml", probe),
        "PD232",
        &[
            ("[kubectl, get, --namepsace, own]", "did you mean `--namespace`?"),
            ("[kubectl, get, --namespace, own]", ""),
            ("[docker, compose, exec, -T, db, psql, --list]", ""),
            ("[kubectl, get, --, --namepsace]", ""),
        ],
    );
    let values = |it: &str| format!("value_options:\n  {it}\n");
    check_made(
        ("vocabulary.yaml", values),
        "PD232",
        &[
            ("git push: [--push-opton, -o]", "did you mean `--push-option`?"),
            ("git push: [--push-option]", ""),
            ("own: [--push-opton]", ""),
        ],
    );
}

#[test]
fn effects_of_programs_have_known_names() {
    let unknown = "unknown effect `@deletes`";
    each(
        "PD106",
        &[
            ("  commands: [\"@deletes\", \"@moves\", \"@writes\", \"@queries\", deploy]", ""),
            ("  commands: [\"@delets\"]", "unknown effect `@delets`"),
            ("  commands: [deploy]\n  except_commands: [\"@deletes\"]", unknown),
        ],
    );
}
