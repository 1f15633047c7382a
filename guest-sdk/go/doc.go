// Package deedbox is for writing Deedbox activities in Go.
//
// An activity is an ordinary function that [Activity] registers. What it changes in the outside world it changes through
// [Context.HTTP], [Context.Messages] and [Context.Files], where the host claims each effect before it is made and answers
// it from its record when the activity runs again. This package holds no policy and keeps no record of its own: it only
// gives the host's interface the shape of Go.
//
// Unit tests use package deedboxtest. Importing package nethttp makes net/http work.
package deedbox
