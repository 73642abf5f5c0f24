//go:build !unix && !windows

package main

// outliveReader has no signal to ignore on this system.
func outliveReader() {}

// noRoom knows no such error on this system.
func noRoom(error) bool { return false }
