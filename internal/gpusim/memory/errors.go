package memory

import "fmt"

// Code is an error of the CUDA driver, with its number.
type Code int

// The codes that a launch or a memory operation may end with.
const (
	InvalidValue       Code = 1
	OutOfMemory        Code = 2
	InvalidPTX         Code = 218
	NotFound           Code = 500
	IllegalAddress     Code = 700
	OutOfResources     Code = 701
	LaunchTimeout      Code = 702
	Assert             Code = 710
	IllegalInstruction Code = 715
	MisalignedAddress  Code = 716
	LaunchFailed       Code = 719
	NotSupported       Code = 801
)

var codeNames = map[Code]string{
	InvalidValue: "invalid value", OutOfMemory: "out of memory", InvalidPTX: "invalid PTX", NotFound: "not found",
	IllegalAddress: "illegal address", OutOfResources: "too many resources requested for launch", LaunchTimeout: "launch timed out",
	Assert: "assertion failed", IllegalInstruction: "illegal instruction", MisalignedAddress: "misaligned address",
	LaunchFailed: "launch failed", NotSupported: "operation not supported",
}

// String is the driver's words.
func (c Code) String() string { return codeNames[c] }

// Error is a request that the device refuses; it stays usable.
type Error struct {
	Code Code
	Msg  string
}

// Error says what was refused.
func (e *Error) Error() string { return "gpusim: " + e.Code.String() + ": " + e.Msg }

// Refuse is an Error.
func Refuse(c Code, format string, args ...any) error { return &Error{c, fmt.Sprintf(format, args...)} }
