//! Expressions as trees: every part of every expression of the built-in pack covers exactly what it
//! was written with.

use policyd::expr::ast::{Expr, ExprKind};
use policyd::lint::Subject;
use policyd::policy::builtin;
use policyd::policy::review::{Base, ReviewedPolicy};
use policyd::time::Timestamp;

use crate::subjects::TODAY;

#[test]
fn a_part_read_by_itself_is_the_part() {
    let pack = builtin::pack();
    let base = Base::new(&pack);
    let reviewed = ReviewedPolicy::new(&pack, &base);
    let subject = Subject::new(&pack, &reviewed, Timestamp::parse(TODAY).unwrap());
    let (mut sites, mut parts) = (0, 0);
    for site in &subject.sites {
        let term = site.term.as_ref().unwrap_or_else(|| panic!("no tree: {}", site.text));
        sites += 1;
        assert_eq!(term.outer, 0..site.text.trim_end().len(), "{}", site.text);
        site.visit(|part| {
            let text = site.text.get(part.range.clone()).unwrap();
            // An argument of a call is a part; a negative number reads as one, too.
            let again = Expr::parse(text).unwrap_or_else(|| panic!("{text} of {}", site.text));
            assert_eq!(again.canonical(), part.canonical(), "{text} of {}", site.text);
            assert_eq!(again.range, 0..text.len(), "{text}");
            let outer = site.text.get(part.outer.clone()).unwrap();
            assert_eq!(Expr::parse(outer).unwrap().canonical(), part.canonical(), "{outer}");
            let inside = part
                .parts()
                .into_iter()
                .all(|it| part.range.start <= it.outer.start && it.outer.end <= part.range.end);
            assert!(inside, "{text}");
            parts += 1;
        });
        assert!(!matches!(term.kind, ExprKind::List(_)), "a list is no value: {}", site.text);
    }
    assert!(sites > 300 && parts > 1_500, "{sites} expressions, {parts} parts");
}
