//go:build nocuda || !(windows || (linux && (amd64 || arm64)))

package dl

import "errors"

func open(string) (uintptr, error) { return 0, errors.New(unavailable) }

func lookup(uintptr, string) (uintptr, error) { return 0, errors.New(unavailable) }

func closeLibrary(uintptr) error { return errors.New(unavailable) }

// Call is never reached: no library is open.
func (p Proc) Call(args ...uintptr) int32 { return -1 }

// Word is never reached: no library is open.
func (p Proc) Word(args ...uintptr) uintptr { return 0 }

// Callback is never reached: no library is open.
func Callback(fn any) Proc { return 0 }

// File is never reached: no library is open.
func (p Proc) File() string { return "" }
