//! What an HTTP request of a program changes, and whether it proves who calls.
//!
//! Contains: the method, data, and headers in the arguments of a client (`http_clients` of the vocabulary), and mutations of
//! GraphQL.
//! Does not contain: the host (`hosts`), the effects that names have (`tool_effects`).

use serde_json::{Map, Value as Json};

use super::invocation::Invocation;
use super::shell_text::ShellText;
use super::tool_effects::effects_of_request;
use crate::tool_vocabulary::DatabaseClient;
use crate::tool_vocabulary::{HttpClient, ToolEffect, ToolWords};
use crate::vocabulary::ValueOptions;
use policyd_yaml::rows::Rows;

/// Methods of HTTP.
pub(super) const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
/// Parts of the names of headers and parameters that prove who calls.
const CREDENTIALS: [&str; 9] =
    ["auth", "token", "key", "secret", "cookie", "credential", "session", "pass", "sign"];
/// Methods of requests that change nothing.
pub(super) const SAFE_METHODS: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
/// The effect of a request that changes something of an unknown kind.
const CHANGES: &str = "changes";
/// The effect of a request with the method `DELETE`.
const DELETES: &str = "deletes";

/// What a pack knows about requests, the command lines of services, and clients of databases.
#[derive(Debug, Clone, Copy)]
pub struct ServiceKnowledge<'a> {
    pub clients: &'a Rows<HttpClient>,
    pub databases: &'a Rows<DatabaseClient>,
    pub values: &'a Rows<ValueOptions>,
    pub effects: &'a [ToolEffect],
    pub words: &'a ToolWords,
}

impl Invocation {
    /// Returns what a request of the program changes: `deletes`. Empty if it changes nothing, or sends no request.
    #[must_use]
    pub fn request_effects(&self, known: ServiceKnowledge<'_>) -> Vec<String> {
        let Some(request) = ProgramRequest::of(self, known) else { return Vec::new() };
        request.effects(known)
    }

    /// Returns whether a request of the program proves who calls.
    #[must_use]
    pub fn has_credential(&self, known: ServiceKnowledge<'_>) -> bool {
        ProgramRequest::of(self, known).is_some_and(|it| it.has_credential(known))
    }
}

/// A request in the arguments of a client.
struct ProgramRequest<'a> {
    program: &'a Invocation,
    client: &'a HttpClient,
    method: String,
    /// Operands that are addresses.
    addresses: Vec<&'a str>,
    /// Operands that are headers or fields: `name:value`, `name=value`.
    items: Vec<&'a str>,
    /// Texts that are sent.
    data: Vec<String>,
}

impl<'a> ProgramRequest<'a> {
    fn of(program: &'a Invocation, known: ServiceKnowledge<'a>) -> Option<Self> {
        let clients = known.clients.named(&program.name);
        let (client, pattern) = clients.into_iter().find_map(|it| {
            let pattern = it.programs.iter().find(|it| program.is(it, known.values))?;
            Some((it, pattern))
        })?;
        let named = pattern.operands(&program.name, known.values);
        let operands: Vec<&str> = program
            .operands(known.values)
            .into_iter()
            .skip(named)
            .map(|it| it.text.as_str())
            .collect();
        let is_method = |it: &str| METHODS.iter().any(|method| method.eq_ignore_ascii_case(it));
        let said = operands.first().filter(|it| client.operands && is_method(it)).copied();
        let rest = operands.get(usize::from(said.is_some())..).unwrap_or_default();
        // Behind the address of `http` are headers and fields.
        let split = if client.operands { 1 } else { rest.len() };
        let (addresses, items) = rest.split_at_checked(split).unwrap_or((rest, &[]));
        let data = values_of(program, &client.data_options, known);
        let data = data.into_iter().map(|it| it.text).chain(program.input.text.clone());
        let mut data: Vec<String> = data.collect();
        data.extend(items.iter().filter(|it| it.contains('=')).map(|it| (*it).to_owned()));
        let has = |options: &[String]| options.iter().any(|it| program.has(it, known.values));
        let given = values_of(program, &client.method_options, known);
        let method = match (given.last(), said) {
            (Some(method), _) => method.text.to_uppercase(),
            (None, Some(method)) => method.to_uppercase(),
            _ if has(&client.get_options) => "GET".to_owned(),
            _ if has(&client.put_options) => "PUT".to_owned(),
            _ if has(&client.data_options) || !data.is_empty() => "POST".to_owned(),
            _ => "GET".to_owned(),
        };
        Some(Self {
            program,
            client,
            method,
            addresses: addresses.to_vec(),
            items: items.to_vec(),
            data,
        })
    }

    fn effects(&self, known: ServiceKnowledge<'_>) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let texts = self.data.iter().map(String::as_str).chain(self.addresses.iter().copied());
        for name in texts.flat_map(mutations) {
            found.extend(effects_of_request("", &name, &[], &Map::new(), known));
        }
        if !found.is_empty() || SAFE_METHODS.contains(&self.method.as_str()) {
            return found;
        }
        if self.method == "DELETE" {
            return vec![DELETES.to_owned()];
        }
        let fields: Map<String, Json> = self.data.iter().flat_map(|it| fields(it)).collect();
        for address in &self.addresses {
            let steps = steps(address);
            let Some((action, before)) = steps.split_last() else { continue };
            found.extend(effects_of_request("create", action, before, &fields, known));
        }
        if found.is_empty() && self.method != "POST" {
            found.push(CHANGES.to_owned());
        }
        found
    }

    fn has_credential(&self, known: ServiceKnowledge<'_>) -> bool {
        let headers = values_of(self.program, &self.client.header_options, known);
        let texts = headers.iter().map(|it| it.text.as_str());
        let name = |it: &'a str| it.find([':', '=']).and_then(|end| it.get(..end));
        // A header without a name is a file, or the value of a variable.
        let mut in_headers = texts.map(|it| it.find([':', ';']).and_then(|end| it.get(..end)));
        let mut in_items = self.items.iter().filter_map(|it| name(it));
        let mut logins = self.client.login_options.iter();
        let in_address = |address: &&str| {
            let rest = address.split_once("://").map_or(*address, |it| it.1);
            let host = rest.split(['/', '?']).next().unwrap_or_default();
            let query = address.split_once('?').map_or("", |it| it.1);
            host.contains('@')
                || query
                    .split('&')
                    .any(|it| is_credential(it.split('=').next().unwrap_or_default()))
        };
        self.client.logged_in
            || logins.any(|it| self.program.has(it, known.values))
            || in_headers.any(|it| it.is_none_or(is_credential))
            || in_items.any(is_credential)
            || self.addresses.iter().any(in_address)
    }
}

/// Returns whether the name of a header or a parameter is one that proves who calls.
pub(super) fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    CREDENTIALS.iter().any(|it| name.contains(it))
}

/// Returns the values of some options, also behind other letters: `-sXPUT`.
fn values_of(
    program: &Invocation,
    options: &[String],
    known: ServiceKnowledge<'_>,
) -> Vec<ShellText> {
    let values = options.iter().flat_map(|it| {
        let bundled = program.bundled_values(it, known.values);
        program.values(it).chain(bundled.collect::<Vec<_>>())
    });
    values.collect()
}

/// Returns the steps of the path of an address up to the last one that is not an id.
fn steps(address: &str) -> Vec<&str> {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |it| it.1.split_once('/').map_or("", |it| it.1));
    let mut steps: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    let is_id = |it: &&str| it.contains(|c: char| c.is_ascii_digit()) && !it.contains(['-', '_']);
    while steps.len() > 1 && steps.last().is_some_and(is_id) {
        steps.pop();
    }
    steps
}

/// Returns the fields of an object of JSON, or of a form.
fn fields(data: &str) -> Vec<(String, Json)> {
    if let Ok(Json::Object(fields)) = serde_json::from_str::<Json>(data) {
        return fields.into_iter().collect();
    }
    let pairs = data.split('&').filter_map(|it| it.split_once('='));
    pairs.map(|(name, value)| (name.trim_end_matches(':').to_owned(), value.into())).collect()
}

/// Returns the names of the mutations in a text of GraphQL, which can be a text in JSON.
fn mutations(text: &str) -> Vec<String> {
    let text = text.replace("\\n", " ").replace("\\\"", "\"");
    let starts = text.match_indices("mutation").filter(|(at, word)| {
        let is_name = |it: Option<char>| it.is_some_and(|c| c.is_alphanumeric() || c == '_');
        let before = text.get(..*at).and_then(|it| it.chars().next_back());
        !is_name(before) && !is_name(text.get(at + word.len()..).and_then(|it| it.chars().next()))
    });
    let bodies = starts.filter_map(|(at, word)| body(text.get(at + word.len()..)?));
    bodies.flat_map(operations).collect()
}

/// Returns what is behind the first brace that no parenthesis contains. Only a name and variables can be before it.
fn body(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.checked_sub(1)?,
            '{' if depth == 0 => return text.get(at + 1..),
            _ if depth == 0 && !(c.is_alphanumeric() || c == '_' || c.is_whitespace()) => {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// Returns the names of the fields at the top of a body, without their aliases.
fn operations(body: &str) -> Vec<String> {
    let (mut found, mut word, mut depth) = (Vec::new(), String::new(), 0_usize);
    for c in body.chars() {
        match c {
            '(' | '{' | '[' => {
                found.extend((depth == 0 && !word.is_empty()).then(|| word.clone()));
                word.clear();
                depth += 1;
            }
            ')' | '}' | ']' if depth == 0 => break,
            ')' | '}' | ']' => depth -= 1,
            c if depth == 0 && (c.is_alphanumeric() || c == '_') => word.push(c),
            // The word before was an alias.
            ':' if depth == 0 => word.clear(),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutations_are_named_without_aliases() {
        for (text, names) in [
            ("mutation { deleteRef(input:{refId:\"a\"}) { id } }", &["deleteRef"][..]),
            (
                "query=mutation($id:ID!){a: mergePullRequest(input:{id:$id}){id} b: addStar(x:1){id}}",
                &["mergePullRequest", "addStar"],
            ),
            (
                "{\"query\":\"mutation Drop($x: In = {a: 1}) {\\n issueDelete(id: \\\"x\\\") { ok } }\"}",
                &["issueDelete"],
            ),
            ("query { mutationLog { id } }", &[]),
            ("how is a mutation, in short, written {x(a:1)}", &[]),
        ] {
            assert_eq!(mutations(text), names, "{text}");
        }
    }

    #[test]
    fn the_steps_of_a_path_end_before_ids() {
        assert_eq!(steps("https://a.b/users/delete/5?x=1"), ["users", "delete"]);
        assert_eq!(steps("repos/a/b/pulls/5/merge"), ["repos", "a", "b", "pulls", "5", "merge"]);
        assert_eq!(steps("https://a.b"), Vec::<&str>::new());
    }
}
