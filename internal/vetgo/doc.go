// Package vetgo reads training programs in Go, with their types, for [go vet] and warpline vet: the rules of package vet as
// analyzers, one for each rule that Go programs can break. It looks at a function at a time, and at functions of the same package
// where these are called: what comes from elsewhere it does not know, and then it says nothing.
//
// A turn is what ends the life of values: a loop over batches or parts of one, and the function of a block (Env.Do). What a rule
// asks of an expression is in which turn its value was made, whether it has a graph, and which modes it is in (value.go).
//
// [go vet]: https://pkg.go.dev/golang.org/x/tools/go/analysis/unitchecker
package vetgo
