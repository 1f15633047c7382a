//! `#[activity]`: registers a function under a name. It must never change the function.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::{Attribute, Error, Expr, ExprLit, FnArg, ItemFn, Lit, LitStr, Result, Type};

const MAX_NAME: usize = 128;

/// The function, and beside it its registration. Fails with the rule that was broken.
pub fn expand(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let function: ItemFn = syn::parse2(item)?;
    check_signature(&function)?;
    let arguments = Arguments::parse(arguments)?;
    let name = arguments.name.unwrap_or_else(|| default_name(&function));
    check_name(&name)?;
    let summary = arguments.summary.unwrap_or_else(|| default_summary(&function));
    let ident = &function.sig.ident;
    Ok(quote! {
        #function

        const _: () = {
            use ::deedbox_guest::__private as private;

            fn call(context: &private::Context, input: &str) -> private::CallResult {
                private::call(context, input, #ident)
            }

            fn schemas() -> private::Schemas {
                private::schemas(#ident)
            }

            private::inventory::submit! {
                private::Registration { name: #name, summary: #summary, call, schemas }
            }
        };
    })
}

#[derive(Default)]
struct Arguments {
    name: Option<LitStr>,
    summary: Option<LitStr>,
}

impl Arguments {
    fn parse(tokens: TokenStream) -> Result<Self> {
        let mut arguments = Self::default();
        let parser = syn::meta::parser(|meta| {
            let slot = if meta.path.is_ident("name") {
                &mut arguments.name
            } else if meta.path.is_ident("summary") {
                &mut arguments.summary
            } else {
                return Err(meta.error("expected `name = \"...\"` or `summary = \"...\"`"));
            };
            *slot = Some(meta.value()?.parse()?);
            Ok(())
        });
        parser.parse2(tokens)?;
        Ok(arguments)
    }
}

fn check_signature(function: &ItemFn) -> Result<()> {
    let signature = &function.sig;
    if let Some(keyword) = &signature.asyncness {
        return Err(Error::new_spanned(keyword, "an activity is an ordinary function: remove `async`"));
    }
    let mut inputs = signature.inputs.iter();
    let takes_context = matches!(
        inputs.next(),
        Some(FnArg::Typed(argument)) if matches!(*argument.ty, Type::Reference(_))
    );
    let takes_input = matches!(inputs.next(), Some(FnArg::Typed(_)));
    if takes_context && takes_input && inputs.next().is_none() {
        return Ok(());
    }
    Err(Error::new_spanned(
        signature,
        "an activity looks like `fn name(ctx: &Context, input: Input) -> Result<Output, Failure>`",
    ))
}

fn default_name(function: &ItemFn) -> LitStr {
    let ident = &function.sig.ident;
    let text = ident.to_string();
    LitStr::new(&text.trim_start_matches("r#").replace('_', "-"), ident.span())
}

fn check_name(name: &LitStr) -> Result<()> {
    let text = name.value();
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=MAX_NAME).contains(&text.len()) && text.chars().all(allowed) {
        return Ok(());
    }
    Err(Error::new_spanned(name, "the name of an activity has 1 to 128 characters: letters, digits, `.`, `_`, `-`"))
}

fn default_summary(function: &ItemFn) -> LitStr {
    let first = function.attrs.iter().filter_map(doc_line).find(|line| !line.is_empty());
    LitStr::new(&first.unwrap_or_default(), function.sig.ident.span())
}

fn doc_line(attribute: &Attribute) -> Option<String> {
    let meta = attribute.meta.require_name_value().ok()?;
    if !meta.path.is_ident("doc") {
        return None;
    }
    match &meta.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(arguments: TokenStream, item: TokenStream) -> String {
        expand(arguments, item).unwrap().to_string()
    }

    fn refused(arguments: TokenStream, item: TokenStream) -> String {
        expand(arguments, item).unwrap_err().to_string()
    }

    fn function() -> TokenStream {
        quote! {
            ///
            /// First line.
            /// Second line.
            #[inline]
            fn charge_once(ctx: &Context, order: Order) -> Result<Receipt, Failure> { todo() }
        }
    }

    #[test]
    fn the_name_and_the_summary_come_from_the_function() {
        let text = expanded(quote!(), function());
        assert!(text.contains(r#"name : "charge-once" , summary : "First line.""#), "{text}");
    }

    #[test]
    fn the_name_and_the_summary_can_be_set() {
        let text = expanded(quote!(name = "a.B_1", summary = "s"), function());
        assert!(text.contains(r#"name : "a.B_1" , summary : "s""#), "{text}");
    }

    #[test]
    fn a_name_that_the_host_would_refuse_does_not_compile() {
        let long = "x".repeat(MAX_NAME + 1);
        for name in ["", "a b", "ä", long.as_str()] {
            assert!(refused(quote!(name = #name), function()).contains("1 to 128"), "{name}");
        }
        assert!(refused(quote!(title = "x"), function()).contains("expected `name"));
    }

    #[test]
    fn another_signature_does_not_compile() {
        let functions = [
            quote!(
                fn f() -> Result<(), Failure> {}
            ),
            quote!(
                fn f(ctx: &Context) -> Result<(), Failure> {}
            ),
            quote!(
                fn f(order: Order, ctx: Context) -> Result<(), Failure> {}
            ),
            quote!(
                fn f(ctx: &Context, a: u8, b: u8) -> Result<(), Failure> {}
            ),
        ];
        for function in functions {
            assert!(refused(quote!(), function).contains("an activity looks like"));
        }
        let asynchronous = quote!(
            async fn f(ctx: &Context, a: u8) -> Result<(), Failure> {}
        );
        assert!(refused(quote!(), asynchronous).contains("remove `async`"));
    }
}
