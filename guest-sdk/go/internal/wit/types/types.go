// Package types has the general types of the component model that the generated bindings name.
package types

const (
	OptionNone = 0
	OptionSome = 1
	ResultOk   = 0
	ResultErr  = 1
)

// Option is a value or none.
type Option[T any] struct {
	tag   uint8
	value T
}

func Some[T any](value T) Option[T] { return Option[T]{OptionSome, value} }

func None[T any]() Option[T] { return Option[T]{} }

func (o Option[T]) Tag() uint8 { return o.tag }

// Some gives the value, or the zero value when there is none.
func (o Option[T]) Some() T { return o.value }

// Result is a value or an error.
type Result[T, E any] struct {
	tag   uint8
	value T
	err   E
}

func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{tag: ResultOk, value: value} }

func Err[T, E any](err E) Result[T, E] { return Result[T, E]{tag: ResultErr, err: err} }

func (r Result[T, E]) Tag() uint8 { return r.tag }

// Ok gives the value, or the zero value when there is an error.
func (r Result[T, E]) Ok() T { return r.value }

// Err gives the error, or the zero value when there is none.
func (r Result[T, E]) Err() E { return r.err }

// Unit is a value that says nothing.
type Unit struct{}

// Tuple2 is a pair.
type Tuple2[A, B any] struct {
	F0 A
	F1 B
}
