//! A glob over a folder: whatever changes something below it is noticed, however that is done, and what
//! only looks is let through.

use super::machine::Machine;

/// One guard of the user's.
const GUARD: &str =
    "- id: theirs\n  when: action.changes([\".rules/**\"])\n  decision: deny\n  message: No.\n";

/// Lines that change what lies in the folder.
const CHANGES: &[&str] = &[
    "echo x > .rules/a.yml",
    "cat > .rules/a.yml <<'EOF'\nx\nEOF",
    "printf x | tee -a .rules/a.yml",
    "printf x | sponge .rules/a.yml",
    "cp a.yml .rules/",
    "cp -r a .rules",
    "cp -t .rules a.yml",
    "mv a.yml .rules",
    "mv .rules old",
    "rm -rf .rules",
    "npx rimraf .rules",
    "rmdir .rules",
    "find .rules -delete",
    "find .rules -name '*.yml' -delete",
    "find .rules -type f -exec rm {} +",
    "rsync -a new/ .rules/",
    "tar -xf a.tgz -C .rules",
    "unzip -o a.zip -d .rules",
    "7z x a.7z -o.rules",
    "sed -i.bak s/a/b/ .rules/a.yml",
    "sed -n -i s/a/b/ .rules/a.yml",
    "perl -pi -e 's/a/b/' .rules/a.yml",
    "ruby -i -pe 'x' .rules/a.yml",
    "awk -i inplace 1 .rules/a.yml",
    "yq -i .a=1 .rules/a.yml",
    "vim -c wq .rules/a.yml",
    "sort -o .rules/a.yml b",
    "gcc a.c -o .rules/a",
    "git config -f .rules/a.yml a.b c",
    "sqlite3 .rules/a.db 'create table a(b)'",
    "ls .rules | xargs -I{} rm .rules/{}",
    "python3 -c \"import shutil; shutil.rmtree('.rules')\"",
    "python3 <<'EOF'\nfrom pathlib import Path\np = Path('.rules/a.yml')\np.write_text('x')\nEOF",
    "python3 <<'EOF'\nwith open('.rules/a.yml', 'r+') as f:\n    f.write('x')\nEOF",
    "node -e \"require('fs').promises.writeFile('.rules/a.yml', 'x')\"",
    "deno eval \"Deno.writeTextFileSync('.rules/a.yml', 'x')\"",
    "perl -we'unlink \".rules/a.yml\"'",
];

/// Lines that leave it as it is.
const LOOKS: &[&str] = &[
    "cat .rules/a.yml",
    "ls -la .rules",
    "grep -rn x .rules",
    "sed -n 1p .rules/a.yml",
    "yq .a .rules/a.yml",
    "cp .rules/a.yml backup/",
    "cp -r .rules /tmp/x",
    "tar -czf a.tgz .rules",
    "git diff .rules",
    "git add .rules",
    "find .rules -name '*.yml'",
    "find . -name '*.pyc' -delete",
    "rm -rf build .rules-old",
    "mv a.yml rules/",
    "python3 -c \"print(open('.rules/a.yml').read())\"",
    "node -e \"require('fs').readFileSync('.rules/a.yml')\"",
];

#[test]
fn what_changes_a_file_below_a_folder_is_noticed() {
    let machine = Machine::new("/home/dev/project");
    machine.guards(GUARD);
    let by_theirs = |line: &str| machine.bash(line).1.contains("`theirs`");
    let missed: Vec<&&str> = CHANGES.iter().filter(|it| !by_theirs(it)).collect();
    assert!(missed.is_empty(), "let through: {missed:#?}");
    let wrong: Vec<&&str> = LOOKS.iter().filter(|it| by_theirs(it)).collect();
    assert!(wrong.is_empty(), "stopped: {wrong:#?}");
}

#[test]
fn a_folder_that_goes_takes_along_what_other_globs_mean() {
    let machine = Machine::new("/home/dev/project");
    machine.guards(
        "- id: theirs\n  when: action.deletes([\"~/.keys/*.pem\", \"conf/**/prod.yml\"])\n  decision: deny\n  message: No.\n",
    );
    for (line, wanted) in [
        ("mv ~/.keys /tmp/x", true),
        ("rm -r conf", true),
        ("rm conf/a/prod.yml", true),
        ("rm -r conf/a/b", false),
        ("rm -r .keys-old", false),
    ] {
        assert_eq!(machine.bash(line).1.contains("`theirs`"), wanted, "{line}");
    }
}
