//! What stands in brackets: the name of a circuit breaker, which has slashes.

use rhai::Expr;

use super::Checker;
use crate::script::engine::in_brackets;
use crate::script::members;
use crate::script::types::Type;

impl Checker<'_> {
    /// `breakers["name"]`, and what follows the bracket.
    pub(super) fn indexed(&mut self, owner: Type, path: &str, inside: &Expr) -> Type {
        let (key, rest) = in_brackets(inside);
        if !matches!(owner, Type::Breakers | Type::Any) {
            let text = format!("a {owner} has nothing in brackets");
            let help = Some("only breakers are named so: `breakers[\"api/claude\"]`".to_owned());
            self.at(key, "expression-syntax", &text, help);
            return Type::Any;
        }
        let found = self.infer(key);
        if !matches!(found, Type::Text | Type::Any) {
            let text = format!("the name of a breaker is a text, not a {found}");
            self.at(key, "argument-type", &text, None);
        }
        if let Expr::StringConstant(name, _) = key
            && members::find(Type::Breakers, name).is_some()
        {
            let help = Some(format!("write `breakers.{name}`, or give the breaker another name"));
            self.at(key, "unknown-fact", &format!("`{name}` is no name of a breaker"), help);
        }
        let path = format!("{path}[{}]", self.slice(key));
        rest.map_or(Type::Breaker, |rest| self.chain(Type::Breaker, &path, rest))
    }
}
