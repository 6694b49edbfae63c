//! The flow of data through code: which calls receive what other calls return, directly or by names.
//!
//! Contains: [`CodeFlow`]. What a call returns reaches each name that a statement sets to it, the calls that receive the
//! name, and the object whose method receives it.
//! Does not contain: what the calls do (`code`). Names have no scope, and the order of statements does not count.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::code_tokens::{CodeName, CodeTokens};

/// Rounds in which names pass data on, at most.
const ROUNDS_MAX: usize = 16;
/// Names that the search looks at, at most.
const WORK_MAX: usize = 400_000;
/// Arguments by which a client proves who it is.
const CREDENTIALS: [&str; 7] = ["headers", "header", "auth", "cookies", "cert", "verify", "cafile"];
/// Words that are not names of values.
const KEYWORDS: [&str; 18] = [
    "let", "const", "var", "my", "our", "local", "self", "this", "await", "async", "global", "new",
    "for", "foreach", "if", "while", "in", "of",
];
/// Methods whose arguments say with whom an object talks.
const CONNECTS: [&str; 9] =
    ["connect", "connect_ex", "open", "request", "post", "put", "patch", "sendto", "start"];

/// A call that code contains.
#[derive(Debug, Clone)]
pub(super) struct CallSite {
    /// Where its name begins.
    pub(super) at: usize,
    /// Where its arguments are.
    pub(super) arguments: Range<usize>,
    /// Whether its first argument is an address. What an address contains is data only behind a `?` or a `=`.
    pub(super) has_address: bool,
    /// Whether it puts its result into its first argument: `open(F, …)` of Perl.
    pub(super) fills: bool,
}

/// Indexes of calls.
pub(super) type Sites = BTreeSet<usize>;

/// The flow of data between the calls of a piece of code.
#[derive(Debug, Default)]
pub(super) struct CodeFlow {
    /// For each call, the calls whose results it receives.
    pub(super) into: Vec<Sites>,
    /// For each call, the arguments that say with whom the object talks that it returns.
    pub(super) peers: Vec<Vec<Range<usize>>>,
}

/// A value that names receive.
#[derive(Debug)]
struct NamedValue {
    names: Vec<String>,
    value: Range<usize>,
}

/// A call of a method: `name.method(arguments)`.
#[derive(Debug)]
struct MethodCall {
    name: String,
    method: String,
    arguments: Range<usize>,
}

/// A function that code defines.
#[derive(Debug)]
struct Function {
    name: String,
    /// Where its definition names it.
    at: usize,
    parameters: Vec<String>,
}

/// The search for the flow of data.
struct FlowSearch<'a> {
    tokens: &'a CodeTokens,
    code: &'a str,
    sites: &'a [CallSite],
    bindings: Vec<NamedValue>,
    functions: Vec<Function>,
    /// The calls whose results a name contains.
    values: BTreeMap<String, Sites>,
    work: usize,
}

impl CodeFlow {
    /// Finds the flow between calls in the code of a program of this name. `None` if that takes too long, or if names still
    /// pass data on after the last round.
    pub(super) fn of(language: &str, code: &str, sites: &[CallSite]) -> Option<Self> {
        let tokens = CodeTokens::of(language, code);
        let mut search = FlowSearch {
            tokens: &tokens,
            code,
            sites,
            bindings: Vec::new(),
            functions: Vec::new(),
            values: BTreeMap::new(),
            work: 0,
        };
        for statement in tokens.statements() {
            search.add_bindings(&statement);
        }
        search.add_parameters();
        search.add_filled();
        let methods = search.method_calls();
        // A name that only receives data is not the object that a call returns: `console.log(response)`.
        let is_ready = search.follow(&[]);
        let objects = search.values.clone();
        let is_ready = search.follow(&methods) && is_ready;
        let mut flow = Self::default();
        for site in sites {
            flow.into.push(search.received(site));
            flow.peers.push(Vec::new());
        }
        for call in &methods {
            let given = search.value_of(&call.arguments);
            for object in objects.get(&call.name).into_iter().flatten() {
                if let Some(into) = flow.into.get_mut(*object) {
                    into.extend(given.iter().filter(|it| *it != object));
                }
                let peers = flow.peers.get_mut(*object);
                let peers = peers.filter(|_| CONNECTS.contains(&call.method.as_str()));
                peers.into_iter().for_each(|it| it.push(call.arguments.clone()));
            }
        }
        (is_ready && search.work < WORK_MAX).then_some(flow)
    }
}

impl FlowSearch<'_> {
    /// Passes data on from name to name until nothing changes. Returns whether nothing changes any more.
    fn follow(&mut self, methods: &[MethodCall]) -> bool {
        let received = methods.iter().map(|it| (vec![it.name.clone()], it.arguments.clone()));
        let bound = self.bindings.iter().map(|it| (it.names.clone(), it.value.clone()));
        let all: Vec<(Vec<String>, Range<usize>)> = bound.chain(received).collect();
        for _ in 0..ROUNDS_MAX {
            let mut is_changed = false;
            for (names, value) in &all {
                let found = self.value_of(value);
                for name in names.iter().filter(|_| !found.is_empty()) {
                    let own = self.values.entry(name.clone()).or_default();
                    let before = own.len();
                    own.extend(&found);
                    is_changed |= own.len() > before;
                }
            }
            if !is_changed {
                return true;
            }
            if self.work >= WORK_MAX {
                break;
            }
        }
        false
    }

    /// Returns the calls whose results an expression contains.
    fn value_of(&mut self, expression: &Range<usize>) -> Sites {
        if self.work >= WORK_MAX {
            return Sites::new();
        }
        let first = self.sites.iter().enumerate().filter(|it| expression.contains(&it.1.at));
        let mut found: Sites = first.map(|it| it.0).collect();
        let names = self.tokens.within(expression);
        self.work += names.len() + self.sites.len() + 1;
        let mut behind = expression.start;
        for token in names.iter().filter(|it| it.is_value) {
            let text = self.tokens.text(token);
            if token.at < behind {
                continue;
            }
            if CREDENTIALS.contains(&text)
                && let Some(end) = self.end_of_named(token, expression.end)
            {
                behind = end;
                continue;
            }
            if !self.is_label(token) {
                found.extend(self.values.get(text).into_iter().flatten());
            }
        }
        found
    }

    /// Returns whether a name is that of an argument or of a member: `f(data=x)`, `{data: x}`.
    fn is_label(&self, name: &CodeName) -> bool {
        let Some((at, sign)) = self.tokens.next_char(name.end) else { return false };
        let after = self.tokens.code.get(at + 1..).and_then(|it| it.chars().next());
        match sign {
            '=' => self.tokens.has_keywords && after != Some('='),
            ':' => self.tokens.has_arrows && after != Some(':'),
            _ => false,
        }
    }

    /// Returns the end of the value of an argument with a name: `headers={…}`, `headers: {…}`. `None` if it has none.
    fn end_of_named(&self, name: &CodeName, end: usize) -> Option<usize> {
        let (sign, c) = self.tokens.next_char(name.end).filter(|it| it.0 < end)?;
        if !matches!(c, '=' | ':') {
            return None;
        }
        let first = self.tokens.split(&(sign + 1..end)).into_iter().next()?;
        // The bracket around the argument may close before.
        let mut depth = 0_usize;
        let inside = self.tokens.part(&first).char_indices().find(|(_, c)| {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' if depth == 0 => return true,
                ')' | ']' | '}' => depth -= 1,
                _ => {}
            }
            false
        });
        Some(inside.map_or(first.end, |it| first.start + it.0))
    }

    /// Returns the calls whose results a call receives.
    fn received(&mut self, site: &CallSite) -> Sites {
        let mut found = Sites::new();
        for (at, argument) in self.tokens.split(&site.arguments).into_iter().enumerate() {
            let is_address = site.has_address && at == 0;
            let written = self.code.get(argument.clone()).unwrap_or_default();
            if !is_address || written.contains(['?', '=']) {
                found.extend(self.value_of(&argument));
            }
        }
        // `connect(…).send(data)`
        let mut end = site.arguments.end + 1;
        while let Some((open, arguments)) = self.chained(end) {
            let text = self.tokens.part(&arguments);
            let is_callback = text.contains("=>") || text.contains("function");
            if !(self.tokens.has_arrows && is_callback) {
                found.extend(self.value_of(&arguments));
            }
            end = arguments.end.max(open) + 1;
        }
        found
    }

    /// Returns the arguments of a method that is called on the result of what ends at an offset.
    fn chained(&self, end: usize) -> Option<(usize, Range<usize>)> {
        let rest = self.tokens.code.get(end..)?.trim_start();
        let rest = rest.strip_prefix('.').or_else(|| rest.strip_prefix("->"))?;
        let name = rest.find(|c: char| !(c.is_alphanumeric() || c == '_'))?;
        let open = self.tokens.code.len() - rest.len() + name;
        let (open, _) = self.tokens.next_char(open).filter(|it| it.1 == '(')?;
        Some((open, self.tokens.inside(open)))
    }

    /// Returns the calls of methods of names.
    fn method_calls(&self) -> Vec<MethodCall> {
        let mut found = Vec::new();
        for pair in self.tokens.names.windows(2) {
            let [name, method] = pair else { continue };
            let between = self.tokens.part(&(name.end..method.at)).trim();
            if !name.is_value || !matches!(between, "." | "->" | "?.") {
                continue;
            }
            let arguments = match self.tokens.next_char(method.end) {
                Some((open, '(')) => self.tokens.inside(open),
                // `s.puts data` of Ruby.
                Some((at, c)) if at > method.end && (c.is_alphanumeric() || c == '_') => {
                    let rest = self.tokens.code.get(at..).unwrap_or_default();
                    at..at + rest.find(['\n', ';']).unwrap_or(rest.len())
                }
                _ => continue,
            };
            found.push(MethodCall {
                name: self.tokens.text(name).to_owned(),
                method: self.tokens.text(method).to_owned(),
                arguments,
            });
        }
        found
    }
}

impl FlowSearch<'_> {
    /// Adds the values that a statement gives to names.
    fn add_bindings(&mut self, statement: &Range<usize>) {
        self.add_assignments(statement);
        let tokens = self.tokens;
        let words = tokens.within(statement);
        let first = words.first().map(|it| tokens.text(it)).unwrap_or_default();
        let before = |at: usize| statement.start..at;
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1);
            match tokens.text(word) {
                "as" if !matches!(first, "import" | "from" | "use") => {
                    self.bind(next.into_iter(), before(word.at));
                }
                "for" | "foreach" => {
                    let rest = words.get(at + 1..).unwrap_or_default();
                    let is_end = |it: &&CodeName| matches!(tokens.text(it), "in" | "of");
                    if let Some(end) = rest.iter().position(|it| is_end(&it)) {
                        let behind = rest.get(end).map_or(statement.end, |it| it.end);
                        self.bind(rest.iter().take(end), behind..statement.end);
                    }
                }
                "def" | "function" | "func" => self.add_function(word, next, before(word.at)),
                "return" => {
                    let name = self.functions.last().map(|it| it.name.clone());
                    let names = name.into_iter().collect();
                    self.bindings.push(NamedValue { names, value: word.end..statement.end });
                }
                _ => {}
            }
        }
        if tokens.has_arrows {
            self.add_arrows(statement);
        }
        self.add_block_parameters(statement);
    }

    /// Binds names to a value.
    fn bind<'t>(&mut self, names: impl Iterator<Item = &'t CodeName>, value: Range<usize>) {
        let names = names.filter(|it| it.is_value).map(|it| self.tokens.text(it).to_owned());
        let names: Vec<String> = names.filter(|it| !KEYWORDS.contains(&it.as_str())).collect();
        self.bindings.push(NamedValue { names, value });
    }

    /// Adds `a = value`, `a, b = value`, `a += value`.
    fn add_assignments(&mut self, statement: &Range<usize>) {
        let tokens = self.tokens;
        let text = tokens.part(statement);
        let (mut depth, mut start) = (0_usize, statement.start);
        let mut skipped = 0;
        for (step, c) in text.char_indices() {
            let at = statement.start + step;
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth = depth.saturating_sub(1),
                '=' if at >= skipped => {
                    let next = text.get(step + 1..).and_then(|it| it.chars().next());
                    if matches!(next, Some('=' | '>' | '~')) {
                        skipped = at + 2;
                        // The body of an arrow begins.
                        start = if next == Some('>') { at + 2 } else { start };
                        continue;
                    }
                    let before = text.get(..step).unwrap_or_default();
                    let compares = before.ends_with(['=', '!', '<', '>']);
                    if compares || (depth > 0 && tokens.has_keywords) {
                        continue;
                    }
                    let names = self.assigned(&(start..at));
                    let names = tokens.within(&names).iter();
                    self.bind(names, at + 1..statement.end);
                    start = at + 1;
                }
                _ => {}
            }
        }
    }

    /// Returns the part before a `=` that contains the names that are set: without the type of Python, and behind
    /// `if x:`.
    fn assigned(&self, left: &Range<usize>) -> Range<usize> {
        let text = self.tokens.part(left);
        let inner = text.rfind(['(', '{']).map_or(0, |it| it + 1);
        if !self.tokens.has_keywords {
            return left.start + inner..left.end;
        }
        let first = text.split_whitespace().next().unwrap_or_default();
        let is_compound =
            matches!(first, "for" | "if" | "with" | "while" | "async" | "else:" | "try:");
        match (is_compound, text.rfind(':'), text.find(':')) {
            (true, Some(colon), _) => left.start + colon + 1..left.end,
            (false, _, Some(colon)) => left.start..left.start + colon,
            _ => left.clone(),
        }
    }

    /// Adds the parameters of arrows: they receive what the call of the statement returns.
    fn add_arrows(&mut self, statement: &Range<usize>) {
        let tokens = self.tokens;
        let text = tokens.part(statement);
        for (step, _) in text.match_indices("=>") {
            let before = text.get(..step).unwrap_or_default().trim_end();
            let start = match before.ends_with(')') {
                true => before.rfind('(').unwrap_or(0),
                false => before
                    .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
                    .map_or(0, |it| it + 1),
            };
            let parameters = statement.start + start..statement.start + before.len();
            let names: Vec<String> = self.values_in(&parameters);
            // `const f = (a) => …`
            let head = text.get(..start).unwrap_or_default().trim_end();
            let head = head.strip_suffix("async").unwrap_or(head).trim_end();
            if let Some(left) = head.strip_suffix('=')
                && let Some(name) =
                    tokens.within(&(statement.start..statement.start + left.len())).last()
            {
                let (name, at) = (tokens.text(name).to_owned(), name.at);
                self.functions.push(Function { name, at, parameters: names.clone() });
            }
            self.bindings
                .push(NamedValue { names, value: statement.start..statement.start + start });
        }
    }

    /// Adds the parameters of a block of Ruby: `a.each { |b| … }`.
    fn add_block_parameters(&mut self, statement: &Range<usize>) {
        let text = self.tokens.part(statement);
        for mark in ["{ |", "{|", "do |"] {
            for (step, _) in text.match_indices(mark) {
                let start = step + mark.len();
                let rest = text.get(start..).unwrap_or_default();
                let Some(end) = rest.find('|') else { continue };
                let names =
                    self.values_in(&(statement.start + start..statement.start + start + end));
                let value = statement.start..statement.start + step;
                self.bindings.push(NamedValue { names, value });
            }
        }
    }

    /// Returns the names of values in a part.
    fn values_in(&self, part: &Range<usize>) -> Vec<String> {
        let names = self.tokens.within(part).iter().filter(|it| it.is_value);
        let names = names.map(|it| self.tokens.text(it)).filter(|it| !KEYWORDS.contains(it));
        names.map(str::to_owned).collect()
    }

    /// Adds a function with a name, or the parameters of one without.
    fn add_function(&mut self, word: &CodeName, next: Option<&CodeName>, before: Range<usize>) {
        let tokens = self.tokens;
        let Some((open, c)) = tokens.next_char(word.end) else { return };
        let named = next.filter(|it| c != '(' && it.at == open);
        let open = named.map_or(Some(open), |it| {
            tokens.next_char(it.end).filter(|it| it.1 == '(').map(|it| it.0)
        });
        let parameters = open.map(|it| tokens.inside(it)).map(|it| {
            let each = tokens.split(&it).into_iter();
            let first = each.filter_map(|it| self.values_in(&it).into_iter().next());
            first.collect::<Vec<String>>()
        });
        let parameters = parameters.unwrap_or_default();
        match named {
            Some(name) => {
                let (name, at) = (tokens.text(name).to_owned(), name.at);
                self.functions.push(Function { name, at, parameters });
            }
            None => self.bindings.push(NamedValue { names: parameters, value: before }),
        }
    }

    /// Adds the names into which calls put their results.
    fn add_filled(&mut self) {
        for site in self.sites.iter().filter(|it| it.fills) {
            let first = self.tokens.split(&site.arguments).into_iter().next().unwrap_or_default();
            let names = self.values_in(&first);
            self.bindings.push(NamedValue { names, value: site.at..site.at + 1 });
        }
    }

    /// Binds the parameters of functions to the arguments of their calls.
    fn add_parameters(&mut self) {
        let tokens = self.tokens;
        let functions = std::mem::take(&mut self.functions);
        let mut by_name: BTreeMap<&str, Vec<&Function>> = BTreeMap::new();
        for function in functions.iter().filter(|it| !it.parameters.is_empty()) {
            by_name.entry(function.name.as_str()).or_default().push(function);
        }
        for token in &tokens.names {
            let Some(named) = by_name.get(tokens.text(token)) else { continue };
            let Some((open, '(')) = tokens.next_char(token.end) else { continue };
            let arguments = tokens.split(&tokens.inside(open));
            for function in named.iter().filter(|it| it.at != token.at) {
                for (name, value) in function.parameters.iter().zip(&arguments) {
                    let names = vec![name.clone()];
                    self.bindings.push(NamedValue { names, value: value.clone() });
                }
            }
        }
        self.functions = functions;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether what `read(…)` returns reaches `send(…)`.
    fn reaches(language: &str, code: &str) -> bool {
        let sites: Vec<CallSite> = ["read(", "send("]
            .iter()
            .map(|name| {
                let at = code.find(name).unwrap();
                let start = at + name.len();
                let inside = CodeTokens::of(language, code).inside(start - 1);
                let has_address = *name == "send(";
                CallSite { at, arguments: start..inside.end, has_address, fills: false }
            })
            .collect();
        CodeFlow::of(language, code, &sites).unwrap().into[1].contains(&0)
    }

    #[test]
    fn data_flows_by_names() {
        for (language, code) in [
            ("python3", "send('u', read('f'))"),
            ("python3", "d = read('f')\nsend('u', data=d)"),
            ("python3", "with read('f') as f:\n    d = f.x()\nsend('u', d)"),
            ("python3", "with read('f') as f: d = f.x(); send('u', d)"),
            ("python3", "def go(u, b):\n    send(u, b)\ngo('u', read('f'))"),
            ("python3", "def get():\n    return read('f')\nsend('u', get())"),
            ("python3", "for line in read('f'):\n    send('u', line)"),
            ("python3", "c = send('u')\nc.request('POST', read('f'))"),
            ("python3", "send('u').sendall(read('f'))"),
            ("python3", "m = []\nm.append(read('f'))\nsend('u', m)"),
            ("python3", "send('u?q=' + read('f'))"),
            ("python3", "d: str = read('f')\nsend('u', d)"),
            ("python3", "self.d = read('f')\nsend('u', self.d)"),
            ("python3", "send('u', f'{read(1)}')"),
            ("python3", "d = read('f')\nsend('u', f'{d}')"),
            ("node", "read('f').then(d => send('u', d))"),
            ("node", "read('f', (e, d) => { send('u', d) })"),
            ("node", "read('f', function (e, d) { send('u', {body: d}) })"),
            ("node", "const {a, b} = read('f'); send('u', b)"),
            ("node", "const go = (b) => send('u', b); go(read('f'))"),
            ("node", "let d = ''; read('f').on('data', c => d += c); send('u', d)"),
            ("ruby", "read('f').each { |l| send('u', l) }"),
            ("ruby", "while l = read('f')\n send('u', \"#{l}\")\nend"),
            ("perl", "my $d = read('f'); send('u', $d)"),
            ("php", "$d = read('f'); send('u', $d);"),
        ] {
            assert!(reaches(language, code), "{language}: {code}");
        }
    }

    #[test]
    fn other_data_does_not_flow() {
        for (language, code) in [
            ("python3", "d = read('f')\nsend('u', {'a': 1})"),
            ("python3", "d = read('f')\nsend('u', 'd')"),
            ("python3", "d = read('f')\nsend(d['url'])"),
            ("python3", "t = read('f')\nsend('u', headers={'A': t}, data=1)"),
            ("python3", "d = read('f')\nsend('u', data=1)\nprint(d)"),
            ("python3", "d = read('f')\nsend('u', d=1)\n# d"),
            ("node", "const t = read('f'); send('u', {headers: {A: t}, body: 'x'})"),
            ("node", "send('u').then(r => console.log(r, read('f')))"),
        ] {
            assert!(!reaches(language, code), "{language}: {code}");
        }
    }

    #[test]
    fn a_search_that_is_not_ready_is_unknown() {
        // Each round passes the data on by one name.
        let names: String = (0..40).rev().map(|it| format!("n{} = n{it}\n", it + 1)).collect();
        let code = format!("{names}n0 = read('f')\nsend('u', n40)\n");
        let at = code.find("read(").unwrap();
        let sites = [CallSite { at, arguments: at + 5..at + 8, has_address: false, fills: false }];
        assert!(CodeFlow::of("python3", &code, &sites).is_none());
    }

    #[test]
    fn a_long_search_ends() {
        let code = format!("{}read('f'); send('u', 1)", "a => ".repeat(8_000));
        let sites = [CallSite { at: 0, arguments: 0..1, has_address: false, fills: false }];
        assert!(CodeFlow::of("node", &code, &sites).is_none());
    }
}
