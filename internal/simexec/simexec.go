// Package simexec runs programs that use the CUDA driver API on simulated GPUs. They find a libcuda.so.1 of ours through the loader,
// which hands their calls to this process (libcuda/libcuda.c); here they are called by their names (package cabi) on the simulated
// driver (package simcuda).
//
//	run_linux.go      a program: its environment, signals, end
//	library_linux.go  the library, made beforehand or here
//	segment_linux.go  the memory through which calls come
//	session_linux.go  a process that calls
//	report.go         what was found, counted and refused
//
// Each process that calls has cards of its own. What it has in its memory is read and written there, by the system's
// process_vm_readv: nothing is copied twice, and pinned memory is seen when work happens, not when it was called for.
package simexec

import (
	"io"

	"github.com/warpline-ml/warpline/internal/simrun"
)

// Config says what to run on which cards.
type Config struct {
	Command []string
	Sim     simrun.Config // the card, the checks, seed, schedule, numerics and limit of steps; no kernel
	Devices int           // that the program finds; 0: one
	Late    bool          // asynchronous work takes effect when something waits for it and not before

	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       bool // Ctrl-C reaches the program by itself
}
