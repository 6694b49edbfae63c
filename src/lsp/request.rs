//! A request of the client: its parameters, and why it has no result.

use lsp_server::ErrorCode;
use lsp_types::TextDocumentIdentifier;
use policyd_editor::ids::RenameError;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Why a request has no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("the client did not send `initialize`")]
    NotInitialized,
    #[error("the client requested the shutdown")]
    ShutDown,
    #[error("unknown method `{0}`")]
    UnknownMethod(String),
    #[error("invalid parameters: {0}")]
    InvalidParams(#[from] serde_json::Error),
    #[error("internal error of policyd; report it with the message before it")]
    Panic,
    #[error(transparent)]
    Rename(#[from] RenameError),
    #[error("{0}")]
    Failed(String),
}

impl RequestError {
    /// Returns the code of the protocol.
    pub(super) const fn code(&self) -> i32 {
        (match self {
            Self::NotInitialized => ErrorCode::ServerNotInitialized,
            Self::ShutDown => ErrorCode::InvalidRequest,
            Self::UnknownMethod(_) => ErrorCode::MethodNotFound,
            Self::InvalidParams(_) => ErrorCode::InvalidParams,
            Self::Panic => ErrorCode::InternalError,
            Self::Failed(_) | Self::Rename(_) => ErrorCode::RequestFailed,
        }) as i32
    }
}

/// Reads parameters.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, RequestError> {
    Ok(serde_json::from_value(params)?)
}

/// A request about an open file.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentParams {
    pub(super) text_document: TextDocumentIdentifier,
}
