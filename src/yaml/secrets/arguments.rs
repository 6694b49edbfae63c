//! Arguments of known programs that are secrets: which option, and in which form. Contains: the table and
//! the pattern of a row. Does not contain: options whose name says that a secret follows, which are in
//! `formats`.

use std::sync::OnceLock;

use regex::Regex;

use crate::pairs::FilteredText;

/// How the secret follows its option.
#[derive(Debug, Clone, Copy)]
enum ArgumentForm {
    /// `-pSECRET`.
    Attached,
    /// `-p SECRET`, `-p=SECRET`.
    Next,
    /// `-pSECRET` or `-p SECRET`.
    Either,
    /// `-u USER:SECRET`, with another character at will.
    After(char),
    /// `-pass pass:SECRET`.
    Prefixed(&'static str),
}

/// One option of some programs.
pub(super) struct Argument {
    /// Names of the programs, each with the subcommand that it needs.
    programs: &'static [&'static str],
    /// Names of the option.
    options: &'static [&'static str],
    form: ArgumentForm,
    regex: OnceLock<Option<Regex>>,
}

const fn row(
    programs: &'static [&'static str],
    options: &'static [&'static str],
    form: ArgumentForm,
) -> Argument {
    Argument { programs, options, form, regex: OnceLock::new() }
}

const MYSQL: &[&str] = &[
    "mysql",
    "mysqldump",
    "mysqladmin",
    "mysqlimport",
    "mysqlcheck",
    "mysqlshow",
    "mysqlsh",
    "mariadb",
    "mariadb-dump",
    "mariadb-admin",
];
const MONGO: &[&str] =
    &["mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport", "mongostat"];
const LDAP: &[&str] =
    &["ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldappasswd", "ldapwhoami"];
const LOGIN: &[&str] = &[
    "docker login",
    "podman login",
    "nerdctl login",
    "buildah login",
    "skopeo login",
    "crane auth login",
    "helm registry login",
    "az login",
    "oc login",
    "cf login",
];

/// The table.
pub(super) static ARGUMENTS: [Argument; 22] = [
    row(MYSQL, &["-p"], ArgumentForm::Attached),
    row(MONGO, &["-p"], ArgumentForm::Either),
    row(LDAP, &["-w"], ArgumentForm::Either),
    row(LOGIN, &["-p"], ArgumentForm::Either),
    row(&["curl"], &["-u", "--user", "-U", "--proxy-user"], ArgumentForm::After(':')),
    row(&["curl"], &["-b", "--cookie"], ArgumentForm::After('=')),
    row(&["http", "https", "xh", "xhs"], &["-a", "--auth"], ArgumentForm::After(':')),
    row(&["skopeo"], &["--creds", "--src-creds", "--dest-creds"], ArgumentForm::After(':')),
    row(&["smbclient", "rpcclient", "smbget"], &["-U", "--user"], ArgumentForm::After('%')),
    row(&["lftp"], &["-u"], ArgumentForm::After(',')),
    row(&["sshpass"], &["-p"], ArgumentForm::Either),
    row(&["openssl"], &["-k", "-K"], ArgumentForm::Next),
    row(&["openssl"], &["-pass", "-passin", "-passout"], ArgumentForm::Prefixed("pass:")),
    row(&["redis-cli", "valkey-cli"], &["-a", "--pass"], ArgumentForm::Next),
    row(&["sqlcmd", "osql", "bcp"], &["-P"], ArgumentForm::Either),
    row(&["zip", "unzip"], &["-P"], ArgumentForm::Either),
    row(&["7z", "7za", "7zz"], &["-p"], ArgumentForm::Attached),
    row(&["plink", "pscp", "psftp"], &["-pw"], ArgumentForm::Next),
    row(
        &["keytool", "jarsigner"],
        &["-storepass", "-keypass", "-srcstorepass", "-deststorepass"],
        ArgumentForm::Next,
    ),
    row(&["mosquitto_pub", "mosquitto_sub"], &["-P", "--pw"], ArgumentForm::Next),
    row(&["cqlsh", "cypher-shell", "rabbitmqadmin"], &["-p"], ArgumentForm::Either),
    row(&["xfreerdp", "wlfreerdp"], &["/p:"], ArgumentForm::Attached),
];

impl Argument {
    /// Whether a text may hold this argument.
    pub(super) fn may_be_in(&self, text: &FilteredText<'_>) -> bool {
        let first = |program: &&str| program.split(' ').next().is_some_and(|it| text.holds(it));
        self.options.iter().any(|it| text.holds(it)) && self.programs.iter().any(first)
    }

    /// The pattern; the secret is in one of its groups.
    pub(super) fn regex(&self) -> Option<&Regex> {
        self.regex.get_or_init(|| Regex::new(&self.pattern()).ok()).as_ref()
    }

    /// The pattern as text.
    fn pattern(&self) -> String {
        let words = |list: &[&str]| list.iter().map(|it| regex::escape(it)).collect::<Vec<_>>();
        let programs = words(self.programs).join("|").replace(' ', r"\s+");
        let options = words(self.options).join("|");
        // The rest of a command: no separator outside of quotes.
        let between = r#"(?:\\\r?\n|"[^"\n]*"|'[^'\n]*'|[^\n;&|"'])*?"#;
        let value = r#"(?:"([^"\n«$]+)"|'([^'\n«]+)'|([^\s"'`;&|<>()«$][^\s"'`;&|<>()«]*))"#;
        let after = |mark: &str| {
            let user = format!(r#"[^\s"'«{mark}]*"#);
            format!(
                r#"(?:"{user}{mark}([^"\n«$]+)"|'{user}{mark}([^'\n«]+)'|{user}{mark}([^\s"'`;&|<>()«$][^\s"'`;&|<>()«]*))"#
            )
        };
        let secret = match self.form {
            ArgumentForm::Attached => value.to_owned(),
            ArgumentForm::Next => format!(r"(?:\s+|=){value}"),
            ArgumentForm::Either => format!(r"(?:\s*|=){value}"),
            ArgumentForm::After(mark) => {
                format!(r"(?:\s*|=){}", after(&regex::escape(&mark.to_string())))
            }
            ArgumentForm::Prefixed(start) => {
                format!(r#"\s+["']?{}([^\s"'`;&|<>()«$][^\s"'`;&|<>()«]*)"#, regex::escape(start))
            }
        };
        format!(
            r#"(?:^|[\s;&|(/"'`$=])(?:{programs})(?:\.exe)?\s(?:{between}\s)?(?:{options}){secret}"#
        )
    }

    /// Each program with each option, as the documentation shows them.
    pub(super) fn shown(&self) -> String {
        let (program, option) = (self.programs.first(), self.options.first());
        let (program, option) = (program.unwrap_or(&""), option.unwrap_or(&""));
        match self.form {
            ArgumentForm::Attached => format!("{program} {option}X"),
            ArgumentForm::Next | ArgumentForm::Either => format!("{program} {option} X"),
            ArgumentForm::After(mark) => format!("{program} {option} user{mark}X"),
            ArgumentForm::Prefixed(start) => format!("{program} {option} {start}X"),
        }
    }
}
