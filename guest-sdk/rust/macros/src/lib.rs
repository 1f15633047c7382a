//! The attributes `#[activity]` and `#[data]` of `deedbox-guest`, which re-exports them.
//!
//! They only add registration and derives around what the author wrote. They must never change the
//! function or the type itself, so that both stay testable without a host.

mod activity;
mod data;

use proc_macro::TokenStream;

/// Makes an ordinary function an activity of this component.
///
/// The function takes `&Context` and one input, and returns `Result<Output, E>` where `E` converts
/// into `Failure`. The input and `Output` are `#[data]` types, or anything that serde and schemars
/// know.
///
/// `#[activity]` takes the name from the function, `_` becoming `-`, and the summary from the first
/// line of its documentation; `#[activity(name = "charge-once", summary = "...")]` sets them.
#[proc_macro_attribute]
pub fn activity(arguments: TokenStream, item: TokenStream) -> TokenStream {
    activity::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Derives what the input or output of an activity needs: serde's `Serialize` and `Deserialize`,
/// and schemars' `JsonSchema`. Attributes of serde work inside as usual.
#[proc_macro_attribute]
pub fn data(arguments: TokenStream, item: TokenStream) -> TokenStream {
    data::expand(arguments.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}
