//! `#[data]`: the derives of an input or output type, reached through `deedbox-guest` alone, so that
//! a first activity needs a single dependency. It must never touch the fields.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, Error, Result};

/// The type with its derives. Fails when the attribute has arguments or is not on a type.
pub fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new_spanned(arguments, "#[data] takes no arguments"));
    }
    let item: DeriveInput = syn::parse2(item)?;
    Ok(quote! {
        #[derive(
            ::core::clone::Clone,
            ::core::fmt::Debug,
            ::deedbox_guest::__private::serde::Serialize,
            ::deedbox_guest::__private::serde::Deserialize,
            ::deedbox_guest::__private::schemars::JsonSchema,
        )]
        #[serde(crate = "::deedbox_guest::__private::serde")]
        #[schemars(crate = "::deedbox_guest::__private::schemars")]
        #item
    })
}
