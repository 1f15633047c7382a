// The samples that every language has, in one component.
package main

// A component has no main program: its host calls what the inits have registered.
func main() {}
