// Package nethttp lets clients of package net/http work in an activity. In a component, importing it replaces
// http.DefaultTransport:
//
//	import _ "deedbox.local/deedbox/nethttp"
//
// Requests go through wasi:http, where the host claims, keys and records them like those of Context.HTTP. Their effects are
// known by method, address and order, unless the request has one of the host's headers, which are never sent: Deedbox-Effect
// for a name; Deedbox-Business-Operation with Deedbox-Business-Key; Deedbox-On-Unknown.
//
// An answer is read whole before RoundTrip returns. An error of the host is a *deedbox.Failure in the tree of the *url.Error.
// Outside of a component, such as in unit tests, the package changes nothing.
package nethttp
