//! Tests of globs and paths.

use super::*;

#[test]
fn a_pattern_could_be_a_file_of_the_glob() {
    for (pattern, glob) in [
        (".e*", ".env"),
        ("/w/.en?", ".env"),
        ("/w/.[e]nv", ".env"),
        ("/w/[.]e[mn]v", ".env"),
        ("/home/x/.ss*/id_rsa", "**/.ssh/id_rsa"),
        ("/home/*/.ssh/id_r*", "**/.ssh/id_rsa"),
        ("/w/.pol*/policyd.yaml", "**/.policyd/**"),
        ("/w/.cl*/hooks/stop.sh", "**/.claude/hooks/**"),
        ("/etc/sha*", "/etc/shadow"),
        ("/e?c/shadow", "/etc/shadow"),
        ("/*/shadow", "/etc/shadow"),
        ("/e*/sudoers", "/etc/sudoers"),
        ("e*/shadow", "/etc/shadow"),
        ("sha*", "/etc/shadow"),
        (".ss*/id_rsa", "**/.ssh/id_rsa"),
        ("/w/.[a-f]nv", ".env"),
        ("/w/.[!f]nv", ".env"),
        ("/w/.[!x]??", "**/.git"),
        ("/w/.[[:alpha:]]nv", ".env"),
        ("/w/.[]e]nv", ".env"),
        ("/w/.*nv", ".env"),
    ] {
        assert!(could_mean(pattern, glob), "{pattern} {glob}");
    }
}

#[test]
fn a_file_of_a_project_among_temporary_files_is_not_temporary() {
    let temporary = vec!["/tmp".to_owned()];
    let [here, in_temporary] = ["/w", "/tmp/w"].map(|project| CallEnvironment {
        project: project.to_owned(),
        folder: project.to_owned(),
        home: "/tmp/home".to_owned(),
        temporary: temporary.clone(),
        ..CallEnvironment::default()
    });
    let fit = |globs: &[&str], path: &str, around: &CallEnvironment| {
        let matchers = PathMatchers::new(globs.iter().copied());
        matchers.fit(&around.known_place(path, None), around)
    };
    for (path, around, is_temporary) in [
        ("/tmp/w/src/a.rs", &here, true),
        ("/tmp/w/src/a.rs", &in_temporary, false),
        ("src/a.rs", &in_temporary, false),
        ("/tmp/x", &in_temporary, true),
    ] {
        assert_eq!(fit(&["/tmp/**"], path, around), is_temporary, "{path}");
        assert_eq!(fit(&["**", "!/tmp/**"], path, around), !is_temporary, "{path}");
    }
    assert!(
        fit(&["/tmp/w/src/**"], "/tmp/w/src/a.rs", &in_temporary),
        "the rule names the project"
    );
}

#[test]
fn a_folder_is_meant_by_more_than_its_first_letters() {
    assert!(could_mean_folder("/w/.pol*", ".policyd"));
    assert!(!could_mean_folder("/w/.ca*", ".cargo"));
}

#[test]
fn the_running_program_is_one_place_wherever_it_is() {
    let own = PathMatchers::new(["<policyd>"]);
    let fits = |program: &str, path: &str| {
        let mut around = CallEnvironment::new("/w", "/w", "/home/ada", &[]);
        program.clone_into(&mut around.program);
        let place = around.known_place(path, Some("/w"));
        own.fit(&ResolvedPath { itself: path.ends_with('/'), ..place }, &around)
    };
    for path in ["/srv/tools/policyd", "/srv/tools/policyd-tools", "/srv/tools/", "/srv/"] {
        assert!(fits("/srv/tools/policyd", path), "{path}");
        assert!(!fits("", path), "{path}");
    }
    for path in ["/srv/tools/policyd2", "/srv/tool/", "/srv/tools/x", "/opt/policyd", "/srv/tools"]
    {
        assert!(!fits("/srv/tools/policyd", path), "{path}");
    }
    assert!(fits("/c/tools/policyd.exe", "/c/tools/policyd-tools.exe"));
}

#[test]
fn long_paths_are_looked_through_once() {
    for steps in ["a/", ".pol*/", "*b*/"] {
        let long = format!("/{}x", steps.repeat(500));
        assert!(!could_mean(&long, "**/.policyd/**/a/**/b/**/c.yaml"), "{steps}");
    }
    assert!(could_mean(&format!("/{}.pol*/x", "a/".repeat(500)), "**/.policyd/**"));
}

#[test]
fn a_pattern_that_says_nothing_or_something_else_is_none() {
    for (pattern, glob) in [
        ("*", ".env"),
        ("/w/*", ".env"),
        ("/w/.*", ".env"),
        ("/w/.[!.]*", ".env"),
        ("/w/.[^.]?*", "**/.git"),
        ("$X/jdk1*/bin/*", "credentials.json"),
        ("/w/*.yml", "secrets.yml"),
        ("/w/src/*.rs", "**/.policyd/**"),
        ("/w/s*/main.rs", "**/.ssh/id_rsa"),
        ("/usr/sha*", "/etc/shadow"),
        ("/w/.env", ".env"),
        ("/w/.[e]nvelope", ".env"),
        ("/w/*/config", "**/.kube/config"),
        ("/w/?kube/config", "**/.kube/config"),
        ("/w/.cl*/skills/x", "**/.claude/hooks/**"),
        ("$D/generated_*.json", "**/.gnupg/**"),
        ("$D.old*", "**/.ssh/*"),
        ("/w/packages/*/dist.tgz", "**/LaunchAgents/**"),
        ("/w/*/x", "/w/secrets/**"),
        ("/w/scripts/*[^cmd]", "credentials.json"),
        ("/w/src/*.[ch]*", "secrets.yml"),
        ("/w/*.[!r]*", "credentials.json"),
        ("/w/.[f-z]nv", ".env"),
    ] {
        assert!(!could_mean(pattern, glob), "{pattern} {glob}");
    }
}

#[test]
fn a_step_is_the_names_that_a_shell_puts_in_its_place() {
    for (step, name) in [
        (".e[mn]*", ".env"),
        ("*.[ch]", "a.c"),
        ("[!a-y]*", "zoo"),
        ("[^a-y]*", "zoo"),
        ("[]x]y", "]y"),
        ("[!]x]y", "ay"),
        ("[[:alpha:]]b", "ab"),
        ("[[=a=]]b", "ab"),
        // In quotes, which are gone here, `!` is a letter: `["!"a]`.
        ("[!a]b", "ab"),
        ("[a-]b", "-b"),
        ("a[b", "a[b"),
        ("*a*b", "xaxbxb"),
        ("*", ""),
    ] {
        assert!(could_be_named(step, name), "{step} {name}");
    }
    for (step, name) in
        [("*.[ch]", "a.rs"), ("[]x]y", "ay"), ("?", ""), ("*a*b", "xaxbxc"), ("a", "ab")]
    {
        assert!(!could_be_named(step, name), "{step} {name}");
    }
}

#[test]
fn letters_in_brackets_are_one() {
    for (step, count) in [(".e*", 2), ("*[^cmd]", 1), ("[ab]c", 2), ("?*", 0), ("a[b", 3)] {
        assert_eq!(letters(step), count, "{step}");
    }
}

#[test]
fn most_of_a_folder_is_meant_by_no_letters() {
    for step in ["*", ".*", "[a-z]*", "[!.]*", "[^.]?*", "?*", ".[!.]*", "*?", "[[:alnum:]]*"] {
        assert!(is_for_most(step), "{step}");
    }
    for step in ["a*", "*.rs", "[ab]*", "?", "[a-z]", ".e*", "[0-9]*", "*[0-9]"] {
        assert!(!is_for_most(step), "{step}");
    }
}

#[test]
fn many_brackets_take_no_longer_than_their_letters() {
    for part in ["[", "[[:", "[a", "[]", "[!"] {
        let step = part.repeat(2_000);
        assert!(letters(&step) > 0 && could_be_named(&step, ".env"), "{part}");
        let step = format!("{}]", part.repeat(80));
        assert!(!could_be_named(&step, &"x".repeat(200)), "{part}");
    }
}

#[test]
fn each_spelling_of_a_path_of_windows_is_one_place() {
    let around = CallEnvironment::new(r"C:\Work", r"C:\Work", r"C:\Users\ada", &[]);
    let spellings =
        [r".claude\settings.json", ".claude/settings.json", r"C:\Work\.claude\settings.json"];
    for path in [
        &spellings[..],
        &[
            "/c/work/.CLAUDE/settings.json",
            "c:/WORK/.claude/settings.json",
            r"\\?\C:\Work\.claude\settings.json",
            "//?/C:/Work/.claude/settings.json",
        ],
    ]
    .concat()
    {
        let place = around.known_place(path, Some("/c/Work"));
        assert_eq!(place.folded.as_deref(), Some("/c/work/.claude/settings.json"), "{path}");
    }
    for path in [
        r".claude\settings.json.",
        r".claude.\settings.json ",
        r".claude\settings.json::$DATA",
        "C:.claude/settings.json",
    ] {
        let place = around.known_place(path, Some("/c/Work"));
        assert_eq!(place.folded.as_deref(), Some("/c/work/.claude/settings.json"), "{path}");
    }
    for (path, expected) in [("../x", "/c/x"), ("./a.b/..", "/c/Work"), ("a..b", "/c/Work/a..b")] {
        let place = around.known_place(path, Some("/c/Work"));
        assert_eq!(place.absolute.as_deref(), Some(expected), "{path}");
    }
    let unix = CallEnvironment::new("/work", "/work", "/home/ada", &[]);
    let place = unix.known_place(r"a\b", Some("/work"));
    let expected = if cfg!(windows) { "/work/a/b" } else { r"/work/a\b" };
    assert_eq!(place.absolute.as_deref(), Some(expected));
}
