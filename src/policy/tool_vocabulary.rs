//! The part of `vocabulary.yaml` about tools that no list names, and about clients of HTTP and of databases.

use std::collections::BTreeMap;

use super::builder::text;
use super::field_value::FieldValue;
use super::fields::TEXTS;
use super::record::{Conversion, record};
use policyd_facts::lens::{DatabaseClient, HttpClient, ToolEffect, ToolWords};
use policyd_yaml::deferred::Lazy;
use policyd_yaml::layered_map::LayeredMap;
use policyd_yaml::rows::Rows;
use policyd_yaml::shape::Kind;

record! {
    pub(super) const TOOL_WORDS: RecordType<ToolWords> = {
        read_verbs: TEXTS => read_verbs, "Verbs of tools that read the files that they are given.";
        write_verbs: TEXTS => write_verbs, "Verbs of tools that write them.";
        copy_verbs: TEXTS => copy_verbs, "Verbs of tools that copy them.";
        move_verbs: TEXTS => move_verbs, "Verbs of tools that move them.";
        delete_verbs: TEXTS => delete_verbs, "Verbs of tools that delete them.";
        look_verbs: TEXTS => look_verbs,
            "Verbs of tools that only look at something: what follows them in a name is not done (`get_reset_link`).";
        make_verbs: TEXTS => make_verbs,
            "Verbs of tools that create or change something: what follows them in a name is a noun (`create_merge_request`).";
        shell_words: TEXTS => shell_words, "Words of tools that run command lines.";
        program_words: TEXTS => program_words,
            "Words of tools that run a program, whose command can be without its name: `gcloud`.";
        inner_words: TEXTS => inner_words,
            "Words of tools that run any command in a container or on another host, although they have a word of `program_words`.";
        runner_words: TEXTS => runner_words, "Words of tools that run code.";
        page_words: TEXTS => page_words, "Words of tools whose code runs in a page of a browser.";
        search_words: TEXTS => search_words,
            "Words of tools that search text, unless they also have a word of `database_words`.";
        database_words: TEXTS => database_words, "Words of tools that ask a database.";
        languages: Kind::Map(&Kind::Text) => languages by LANGUAGES,
            "Words of tools that run code of a language, each with the equivalent command: `python3 -c`.";
        command_keys: TEXTS => command_keys, "Keys of a command line.";
        command_words: TEXTS => command_words, "Words in the keys of command lines: `cli_command`.";
        about_words: TEXTS => about_words, "Words in keys that only say something about a command.";
        argument_keys: TEXTS => argument_keys, "Keys of the arguments of a command.";
        program_keys: TEXTS => program_keys, "Keys of a program whose arguments are a list of their own.";
        typed_keys: TEXTS => typed_keys, "Keys of what a tool types into a shell.";
        folder_keys: TEXTS => folder_keys, "Keys of the working folder of a command.";
        code_keys: TEXTS => code_keys, "Keys of code.";
        language_keys: TEXTS => language_keys, "Keys of the language of code.";
        sql_keys: TEXTS => sql_keys, "Keys of SQL statements.";
        query_keys: TEXTS => query_keys, "Keys of a question, which can be an SQL statement.";
        sql_objects: TEXTS => sql_objects, "Objects that SQL statements create, change, or drop.";
        path_keys: TEXTS => path_keys, "Keys of paths.";
        source_keys: TEXTS => source_keys, "Keys of the source of a copy or move.";
        target_keys: TEXTS => target_keys, "Keys of its target.";
        content_keys: TEXTS => content_keys, "Keys of text that is written into a file.";
        text_keys: TEXTS => text_keys,
            "Further keys of such text, if the name of the tool does not say what it does.";
        action_keys: TEXTS => action_keys, "Keys of one word that says what the tool does: `{command: destroy}`.";
        address_keys: TEXTS => address_keys, "Keys of the address of an HTTP request.";
        method_keys: TEXTS => method_keys, "Keys of the method of an HTTP request.";
        preview_keys: TEXTS => preview_keys, "Keys that say that nothing is done, if they are true: `dry_run`.";
        remote_keys: TEXTS => remote_keys,
            "Keys of what belongs to a service, so that a path beside them is not a local file: `repo`.";
        own_keys: TEXTS => own_keys, "Keys of what belongs to the agent: `pid` of a process that it started.";
    }

    pub(super) const TOOL_EFFECT: RecordType<ToolEffect> = {
        effect: Kind::Text => effect,
            "The effect, as `action.tool_effects` has it. Without this key, the tools have no effects at all.";
        verbs: TEXTS => verbs, "Verbs, one of which the name or the input contains. A verb behind one that only looks does not count.";
        nouns: TEXTS => nouns, "Nouns that count like such a verb behind `create` and similar verbs: `create_refund`.";
        objects: TEXTS => objects, "Words, one of which the name of the server or tool must contain.";
        names: TEXTS => names, "Globs of names in lower case with `_` between words, with or without the server: `git_reset`.";
        inputs: TEXTS => inputs, "Keys with values, one of which the input must contain: `visibility=public`.";
        except: TEXTS => except, "Globs of names that the row does not concern.";
        looks: Kind::Bool => looks,
            "Whether the row also concerns tools that only look at something (`get_secret`), and whether its objects can be behind the verb of a command line: `get secret`.";
    }

    pub(super) const HTTP_CLIENT: RecordType<HttpClient> = {
        programs [mandatory()]: TEXTS => programs, "Command patterns.";
        method_options: TEXTS => method_options, "Options whose value is the method.";
        data_options: TEXTS => data_options, "Options that send data, so that the method is `POST` by default.";
        put_options: TEXTS => put_options, "Options that send data as `PUT` by default.";
        get_options: TEXTS => get_options, "Options with which the method is `GET` or `HEAD` by default.";
        header_options: TEXTS => header_options, "Options whose value is a header.";
        login_options: TEXTS => login_options, "Options that prove who calls: `-u`.";
        operands: Kind::Bool => operands,
            "Whether operands can be the method, headers, and fields: `http PUT host name:value`.";
        logged_in: Kind::Bool => logged_in, "Whether they always prove who calls: `gh api`.";
    }

    pub(super) const DATABASE_CLIENT: RecordType<DatabaseClient> = {
        programs [mandatory()]: TEXTS => programs, "Command patterns.";
        database_options: TEXTS => database_options, "Options whose value is the name of the database.";
        host_options: TEXTS => host_options, "Options whose value is the host.";
        remote_options: TEXTS => remote_options,
            "Options without which they use a local copy of the database: `--remote`.";
        file: Kind::Bool => file, "Whether the first operand is the file of the database.";
        local: Kind::Bool => local, "Whether the database is on this machine if no host is named.";
        rolls_back: Kind::Bool => rolls_back, "Whether a transaction also undoes dropped objects.";
    }
}

/// The words of tools, which few calls need.
pub(super) const WORDS: Conversion<Lazy<ToolWords>> = Conversion::reading(|map, builder| {
    Some(TOOL_WORDS.read(&LayeredMap::from_iter([map]), builder).into())
});

pub(super) const EFFECTS: Conversion<Lazy<Vec<ToolEffect>>> =
    Conversion::reading(|list, builder| Some((TOOL_EFFECT.items.read)(list, builder)?.into()));

pub(super) const HTTP_CLIENTS: Conversion<Lazy<Rows<HttpClient>>> =
    Conversion::reading(|list, builder| Some((HTTP_CLIENT.items.read)(list, builder)?.into()));

pub(super) const DATABASE_CLIENTS: Conversion<Rows<DatabaseClient>> =
    Conversion::reading(|list, builder| Some((DATABASE_CLIENT.items.read)(list, builder)?.into()));

const LANGUAGES: Conversion<Vec<(String, String)>> = Conversion::reading(|map, _| {
    let entries = map.entries()?.iter();
    let commands: BTreeMap<String, String> = entries
        .map(|(name, command)| {
            (text(Some(name)), FieldValue::from_node(command).unwrap_or_default())
        })
        .collect();
    Some(commands.into_iter().collect())
});
