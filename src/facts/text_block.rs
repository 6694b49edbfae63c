//! Blocks of source text, found by indentation: the same rule for languages with braces and without.

/// Returns a line of a text and the lines of the block that it begins: the deeper indented lines that
/// follow. `head` must be a slice of `text`.
pub(super) fn lines<'t>(text: &'t str, head: &'t str) -> Vec<&'t str> {
    let mut rest = text.lines().skip_while(|line| !std::ptr::eq(*line, head));
    let mut block: Vec<&str> = rest.next().into_iter().collect();
    let (depth, mut before, mut has_begun) = (indentation(head), head, false);
    for line in rest.filter(|line| !line.trim().is_empty()) {
        let is_part = indentation(line) > depth;
        has_begun |= is_part;
        if !is_part && (indentation(line) < depth || !continues_head(before, line, has_begun)) {
            break;
        }
        block.push(line);
        before = line;
    }
    block
}

/// Whether a line that is as deep as the head belongs to the head: it follows an annotation, or opens the block
/// after a signature of several lines.
fn continues_head(before: &str, line: &str, has_begun: bool) -> bool {
    let (before, line) = (before.trim_start(), line.trim_start());
    let is_annotated = !has_begun
        && (before.starts_with('@') || before.starts_with("#[") || before.starts_with('['));
    is_annotated || line.starts_with('{') || (has_begun && line.starts_with(')'))
}

fn indentation(line: &str) -> usize {
    line.len().saturating_sub(line.trim_start().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(text: &str, head: &str) -> String {
        let head = text.lines().find(|line| line.trim_start().starts_with(head)).unwrap();
        lines(text, head).iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_block_is_what_is_indented_deeper() {
        for (text, head, expected) in [
            (
                "class A(ABC):\n    def f(self):\n        pass\n\n    x = 1\n\ny = 2\n",
                "class",
                "class A(ABC): def f(self): pass x = 1",
            ),
            (
                "fn a() {}\n#[cfg(test)]\nmod t {\n    fn b() {}\n}\nfn c() {}\n",
                "#[cfg",
                "#[cfg(test)] mod t { fn b() {}",
            ),
            ("#[cfg(test)]\nuse a;\n\nfn c() {\n    d()\n}\n", "#[cfg", "#[cfg(test)] use a;"),
            (
                "interface A\n{\n  f();\n}\nvoid g()\n{\n  h();\n}\n",
                "interface",
                "interface A { f();",
            ),
            (
                "    @abstractmethod\n    @cached\n    def f(\n        self,\n    ):\n        pass\n    def g(self):\n        pass\n",
                "@abs",
                "@abstractmethod @cached def f( self, ): pass",
            ),
            (
                "    raise E(\"subclasses\")\ndef g():\n    pass\n",
                "raise",
                "raise E(\"subclasses\")",
            ),
            ("a\n", "a", "a"),
        ] {
            assert_eq!(block(text, head), expected, "{text}");
        }
    }
}
