//! What a pack knows about the names and the inputs of tools that it does not list, and about clients of HTTP and of databases.

use std::borrow::Cow;

use policyd_yaml::rows::RowNames;
use serde::{Deserialize, Serialize};

use crate::pattern::CommandPattern;

/// Words in the names of tools, and keys of their inputs. Words are in lower case, and keys contain letters and digits only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolWords {
    /// Verbs of tools that read the files that they are given.
    pub read_verbs: Vec<String>,
    /// Verbs of tools that write the files that they are given.
    pub write_verbs: Vec<String>,
    /// Verbs of tools that copy files.
    pub copy_verbs: Vec<String>,
    /// Verbs of tools that move files.
    pub move_verbs: Vec<String>,
    /// Verbs of tools that delete the files that they are given.
    pub delete_verbs: Vec<String>,
    /// Verbs of tools that only look at something: what follows them in a name is not done.
    pub look_verbs: Vec<String>,
    /// Verbs of tools that create or change something: what follows them in a name is a noun.
    pub make_verbs: Vec<String>,
    /// Words of tools that run command lines.
    pub shell_words: Vec<String>,
    /// Words of tools that run a program, whose command can be without its name: `gcloud`.
    pub program_words: Vec<String>,
    /// Words of tools that run any command in a container or on another host.
    pub inner_words: Vec<String>,
    /// Words of tools that run code.
    pub runner_words: Vec<String>,
    /// Words of tools whose code runs in a page.
    pub page_words: Vec<String>,
    /// Words of tools that search text, unless they have a word of `database_words`.
    pub search_words: Vec<String>,
    /// Words of tools that ask a database.
    pub database_words: Vec<String>,
    /// Words of tools that run code of a language, each with the equivalent command.
    pub languages: Vec<(String, String)>,
    /// Keys of a command line.
    pub command_keys: Vec<String>,
    /// Words in the keys of command lines.
    pub command_words: Vec<String>,
    /// Words in keys that say something about a command.
    pub about_words: Vec<String>,
    /// Keys of the arguments of a command.
    pub argument_keys: Vec<String>,
    /// Keys of a program whose arguments are a list of their own.
    pub program_keys: Vec<String>,
    /// Keys of what a tool types into a shell.
    pub typed_keys: Vec<String>,
    /// Keys of the working directory of a command.
    pub folder_keys: Vec<String>,
    /// Keys of code.
    pub code_keys: Vec<String>,
    /// Keys of the language of code.
    pub language_keys: Vec<String>,
    /// Keys of SQL statements.
    pub sql_keys: Vec<String>,
    /// Keys of a question, which can be an SQL statement.
    pub query_keys: Vec<String>,
    /// Objects of SQL statements that create, change, or drop something.
    pub sql_objects: Vec<String>,
    /// Keys of paths.
    pub path_keys: Vec<String>,
    /// Keys of the source of a copy or move.
    pub source_keys: Vec<String>,
    /// Keys of the target of a copy or move.
    pub target_keys: Vec<String>,
    /// Keys of text that is written into a file.
    pub content_keys: Vec<String>,
    /// Further keys of such text, if the name of the tool does not say what it does.
    pub text_keys: Vec<String>,
    /// Keys of one word that says what the tool does.
    pub action_keys: Vec<String>,
    /// Keys of the address of an HTTP request.
    pub address_keys: Vec<String>,
    /// Keys of the method of an HTTP request.
    pub method_keys: Vec<String>,
    /// Keys that say that nothing is done, if they are true.
    pub preview_keys: Vec<String>,
    /// Keys of what belongs to a service, so that a path is not a local file.
    pub remote_keys: Vec<String>,
    /// Keys of what belongs to the agent, such as a process that it started.
    pub own_keys: Vec<String>,
}

impl ToolWords {
    /// Returns what is known without a vocabulary: tools that run a command line.
    #[must_use]
    pub fn of_no_vocabulary() -> Self {
        Self {
            command_keys: ["command", "cmd", "script"].map(str::to_owned).to_vec(),
            shell_words: ["bash", "shell", "sh", "powershell", "command"]
                .map(str::to_owned)
                .to_vec(),
            ..Self::default()
        }
    }
}

/// What tools do to something that is not a local file, by their names and inputs. All conditions of a row must be true.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolEffect {
    /// The effect: `deletes`. Empty for tools without an effect.
    pub effect: String,
    /// Verbs, one of which the name or the input contains.
    pub verbs: Vec<String>,
    /// Nouns that count like a verb behind `create` and similar verbs.
    pub nouns: Vec<String>,
    /// Words, one of which the name of the server or the tool must contain.
    pub objects: Vec<String>,
    /// Globs of names, in lower case with `_` between words.
    pub names: Vec<String>,
    /// Keys with values, one of which the input must contain.
    pub inputs: Vec<String>,
    /// Globs of names that the row does not concern. They match the name with or without its server.
    pub except: Vec<String>,
    /// Whether the row also concerns tools that only look at something: what they show can be a secret.
    pub looks: bool,
}

/// A program that sends HTTP requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpClient {
    /// Command patterns.
    pub programs: Vec<CommandPattern>,
    /// Options whose value is the method. Without them, the method is an operand or follows from the other options.
    pub method_options: Vec<String>,
    /// Options that send data, so that the method is `POST`.
    pub data_options: Vec<String>,
    /// Options that send data as `PUT`.
    pub put_options: Vec<String>,
    /// Options that put the data into the address, or ask for headers only.
    pub get_options: Vec<String>,
    /// Options whose value is a header.
    pub header_options: Vec<String>,
    /// Options that prove who calls.
    pub login_options: Vec<String>,
    /// Whether operands can be the method, headers, and fields: `http PUT host name:value`.
    pub operands: bool,
    /// Whether it always proves who calls: `gh api`.
    pub logged_in: bool,
}

impl RowNames for HttpClient {
    fn names(&self) -> Vec<Cow<'_, str>> {
        self.programs.iter().map(|it| it.program().into()).collect()
    }
}

/// A program that runs statements of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseClient {
    /// Command patterns.
    pub programs: Vec<CommandPattern>,
    /// Options whose value is the name of the database.
    pub database_options: Vec<String>,
    /// Options whose value is the host.
    pub host_options: Vec<String>,
    /// Options without which it uses a local copy of the database: `--remote`.
    pub remote_options: Vec<String>,
    /// Whether the first operand is the file of the database.
    pub file: bool,
    /// Whether the database is on this machine if no host is named.
    pub local: bool,
    /// Whether a transaction also undoes dropped objects.
    pub rolls_back: bool,
}

impl RowNames for DatabaseClient {
    fn names(&self) -> Vec<Cow<'_, str>> {
        self.programs.iter().map(|it| it.program().into()).collect()
    }
}
