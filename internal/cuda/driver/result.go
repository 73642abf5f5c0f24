package driver

import (
	"fmt"
	"sync"
)

// Result is a CUresult.
type Result int32

// The results that somebody tells apart, by their numbers in cuda.h.
const (
	Success                  Result = 0
	InvalidValue             Result = 1
	OutOfMemory              Result = 2
	NotInitialized           Result = 3
	Deinitialized            Result = 4
	StubLibrary              Result = 34
	NeedsNewerDriver         Result = 36
	DeviceUnavailable        Result = 46
	NoDevice                 Result = 100
	InvalidDevice            Result = 101
	DeviceNotLicensed        Result = 102
	InvalidImage             Result = 200
	InvalidContext           Result = 201
	NoBinaryForGPU           Result = 209
	ECCUncorrectable         Result = 214
	PeerAccessUnsupported    Result = 217
	InvalidPTX               Result = 218
	NVLinkUncorrectable      Result = 220
	CompilerNotFound         Result = 221
	UnsupportedPTXVersion    Result = 222
	CompilationDisabled      Result = 223
	Contained                Result = 226
	OperatingSystem          Result = 304
	InvalidHandle            Result = 400
	IllegalState             Result = 401
	NotFound                 Result = 500
	NotReady                 Result = 600
	IllegalAddress           Result = 700
	OutOfResources           Result = 701
	LaunchTimeout            Result = 702
	PeerAlreadyEnabled       Result = 704
	PeerNotEnabled           Result = 705
	ContextDestroyed         Result = 709
	Assert                   Result = 710
	HostMemoryRegistered     Result = 712
	HostMemoryNotRegistered  Result = 713
	HardwareStackError       Result = 714
	IllegalInstruction       Result = 715
	MisalignedAddress        Result = 716
	InvalidAddressSpace      Result = 717
	InvalidPC                Result = 718
	LaunchFailed             Result = 719
	CooperativeTooLarge      Result = 720
	TensorMemoryLeak         Result = 721
	NotPermitted             Result = 800
	NotSupported             Result = 801
	SystemNotReady           Result = 802
	DriverMismatch           Result = 803
	CompatNotSupported       Result = 804
	MPSClientTerminated      Result = 810
	StreamCaptureUnsupported Result = 900
	StreamCaptureInvalidated Result = 901
	StreamCaptureMerge       Result = 902
	StreamCaptureUnmatched   Result = 903
	StreamCaptureUnjoined    Result = 904
	StreamCaptureIsolation   Result = 905
	StreamCaptureImplicit    Result = 906
	CapturedEvent            Result = 907
	StreamCaptureWrongThread Result = 908
	GraphUpdateFailure       Result = 910
	ExternalDevice           Result = 911
	InvalidClusterSize       Result = 912
	Unknown                  Result = 999
)

// learned are the names of results that the driver knows and cuda.h did not when names was written.
var learned sync.Map // Result to naming

// Learn keeps the name and the meaning of a result that the package does not know. A known one keeps its own.
func Learn(r Result, name, meaning string) {
	if !r.Known() {
		learned.Store(r, naming{name, meaning})
	}
}

// naming is the name and the meaning of a result, the latter with advice where there is some.
func (r Result) naming() (n naming, ok bool) {
	if n, ok = names[r]; ok {
		return n, true
	}
	if v, ok := learned.Load(r); ok {
		return v.(naming), true
	}
	return naming{}, false
}

// Known reports whether the result has a name.
func (r Result) Known() bool {
	_, ok := r.naming()
	return ok
}

// String is the result's name in cuda.h, or its number.
func (r Result) String() string {
	if n, ok := r.naming(); ok {
		return n.name
	}
	return fmt.Sprintf("CUDA error %d", int32(r))
}

// Meaning is what the result says, in words; empty where nobody knows.
func (r Result) Meaning() string {
	n, _ := r.naming()
	return n.meaning
}

// Sticky reports whether the context stays in this error until it is destroyed, or the process until it ends.
func (r Result) Sticky() bool {
	switch r {
	case ECCUncorrectable, NVLinkUncorrectable, Contained, IllegalAddress, LaunchTimeout, ContextDestroyed, Assert, HardwareStackError,
		IllegalInstruction, MisalignedAddress, InvalidAddressSpace, InvalidPC, LaunchFailed, TensorMemoryLeak, MPSClientTerminated, ExternalDevice:
		return true
	}
	return false
}

// Error is a failed call.
type Error struct {
	Call   string // of the C function
	Result Result
	Detail string // what a simulated GPU knows of it, or a compiler's log
}

// Error says which call failed, how, and why where that is known.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s (%d)", e.Call, e.Result, int32(e.Result))
	if n, ok := e.Result.naming(); ok {
		s += ": " + n.meaning
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Check makes an error of a result, nil of Success.
func Check(call string, r Result) error {
	if r == Success {
		return nil
	}
	return &Error{Call: call, Result: r}
}
