//! The todo list: `TodoWrite` replaces it, `TaskCreate` and `TaskUpdate` change it.

use super::super::record::lenient::Either;
use super::super::record::wire::{Input, TodoInput};
use super::super::{Facts, Todo};
use super::{cut, masked_front};
use policyd_base::limits::{NAME_TEXT_MAX, TODOS_KEPT_MAX};

impl Facts {
    pub(super) fn todo_call(&mut self, name: &str, input: &Input<'_>) {
        match name {
            "TodoWrite" | "todo_write" | "write_todos" => {
                let items = input.todos.elements().filter_map(Either::one);
                self.todos.items = items.take(TODOS_KEPT_MAX).map(todo).collect();
            }
            "TaskUpdate" => self.task_update(input),
            "TaskCreate" => {}
            _ => return,
        }
        self.todos.seen = true;
        self.todos.last_seq = self.seq;
    }

    fn task_update(&mut self, input: &Input<'_>) {
        if &*input.status == "deleted" {
            self.todos.items.retain(|todo| todo.id != *input.task_id);
            return;
        }
        let known = self.todos.items.iter_mut().find(|todo| todo.id == *input.task_id);
        let Some(todo) = known else { return };
        if !input.status.is_empty() {
            cut(&input.status, NAME_TEXT_MAX).clone_into(&mut todo.status);
        }
        if !input.subject.is_empty() {
            todo.content = masked_front(&input.subject, NAME_TEXT_MAX);
        }
    }

    /// Adds a task once its result contains its id.
    pub(super) fn task_created(&mut self, subject: &str, id: &str, text: &str) {
        let id = if id.is_empty() { created_id(text).unwrap_or_default() } else { id };
        if self.todos.items.len() < TODOS_KEPT_MAX {
            self.todos.items.push(Todo {
                id: cut(id, NAME_TEXT_MAX).to_owned(),
                content: subject.to_owned(),
                status: "pending".to_owned(),
            });
        }
        self.todos.last_seq = self.seq;
    }
}

fn todo(input: &TodoInput<'_>) -> Todo {
    Todo {
        id: String::new(),
        content: masked_front(&input.content, NAME_TEXT_MAX),
        status: cut(&input.status, NAME_TEXT_MAX).to_owned(),
    }
}

/// Parses the id in `Task #1 created successfully`.
fn created_id(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Task #")?;
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
    rest.get(..end)
}
