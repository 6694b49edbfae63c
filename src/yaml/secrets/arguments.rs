//! Arguments of known programs that are secrets: which option, and in which form. Contains: the table and
//! the pattern of a row. Does not contain: options whose name says that a secret follows, which are in
//! `formats`.

use std::sync::OnceLock;

use regex::Regex;

use crate::pairs::FilteredText;

/// How the secret follows its option.
#[derive(Debug, Clone, Copy)]
enum Form {
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
    form: Form,
    regex: OnceLock<Option<Regex>>,
}

const fn row(
    programs: &'static [&'static str],
    options: &'static [&'static str],
    form: Form,
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
    row(MYSQL, &["-p"], Form::Attached),
    row(MONGO, &["-p"], Form::Either),
    row(LDAP, &["-w"], Form::Either),
    row(LOGIN, &["-p"], Form::Either),
    row(&["curl"], &["-u", "--user", "-U", "--proxy-user"], Form::After(':')),
    row(&["curl"], &["-b", "--cookie"], Form::After('=')),
    row(&["http", "https", "xh", "xhs"], &["-a", "--auth"], Form::After(':')),
    row(&["skopeo"], &["--creds", "--src-creds", "--dest-creds"], Form::After(':')),
    row(&["smbclient", "rpcclient", "smbget"], &["-U", "--user"], Form::After('%')),
    row(&["lftp"], &["-u"], Form::After(',')),
    row(&["sshpass"], &["-p"], Form::Either),
    row(&["openssl"], &["-k", "-K"], Form::Next),
    row(&["openssl"], &["-pass", "-passin", "-passout"], Form::Prefixed("pass:")),
    row(&["redis-cli", "valkey-cli"], &["-a", "--pass"], Form::Next),
    row(&["sqlcmd", "osql", "bcp"], &["-P"], Form::Either),
    row(&["zip", "unzip"], &["-P"], Form::Either),
    row(&["7z", "7za", "7zz"], &["-p"], Form::Attached),
    row(&["plink", "pscp", "psftp"], &["-pw"], Form::Next),
    row(
        &["keytool", "jarsigner"],
        &["-storepass", "-keypass", "-srcstorepass", "-deststorepass"],
        Form::Next,
    ),
    row(&["mosquitto_pub", "mosquitto_sub"], &["-P", "--pw"], Form::Next),
    row(&["cqlsh", "cypher-shell", "rabbitmqadmin"], &["-p"], Form::Either),
    row(&["xfreerdp", "wlfreerdp"], &["/p:"], Form::Attached),
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
            Form::Attached => value.to_owned(),
            Form::Next => format!(r"(?:\s+|=){value}"),
            Form::Either => format!(r"(?:\s*|=){value}"),
            Form::After(mark) => format!(r"(?:\s*|=){}", after(&regex::escape(&mark.to_string()))),
            Form::Prefixed(start) => {
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
            Form::Attached => format!("{program} {option}X"),
            Form::Next | Form::Either => format!("{program} {option} X"),
            Form::After(mark) => format!("{program} {option} user{mark}X"),
            Form::Prefixed(start) => format!("{program} {option} {start}X"),
        }
    }
}
