//go:build !amd64

package simexec

// ready is empty: the library is made where it is needed.
var ready []byte
