package driver

import "fmt"

// Result is a CUresult.
type Result int32

// The results that the engine tells apart, by their numbers in cuda.h.
const (
	Success                 Result = 0
	InvalidValue            Result = 1
	OutOfMemory             Result = 2
	NotInitialized          Result = 3
	Deinitialized           Result = 4
	StubLibrary             Result = 34
	NoDevice                Result = 100
	InvalidDevice           Result = 101
	InvalidImage            Result = 200
	InvalidContext          Result = 201
	NoBinaryForGPU          Result = 209
	ECCUncorrectable        Result = 214
	PeerAccessUnsupported   Result = 217
	InvalidPTX              Result = 218
	NVLinkUncorrectable     Result = 220
	UnsupportedPTXVersion   Result = 222
	InvalidHandle           Result = 400
	NotFound                Result = 500
	NotReady                Result = 600
	IllegalAddress          Result = 700
	OutOfResources          Result = 701
	LaunchTimeout           Result = 702
	PeerAlreadyEnabled      Result = 704
	PeerNotEnabled          Result = 705
	ContextDestroyed        Result = 709
	Assert                  Result = 710
	HostMemoryRegistered    Result = 712
	HostMemoryNotRegistered Result = 713
	IllegalInstruction      Result = 715
	MisalignedAddress       Result = 716
	LaunchFailed            Result = 719
	CooperativeTooLarge     Result = 720
	NotPermitted            Result = 800
	NotSupported            Result = 801
	SystemNotReady          Result = 802
	DriverMismatch          Result = 803
	CompatNotSupported      Result = 804
	Unknown                 Result = 999
)

// names has the names and meanings of cuda.h, the latter as advice where there is some.
var names = map[Result]struct{ name, meaning string }{
	Success:                 {"CUDA_SUCCESS", "no error"},
	InvalidValue:            {"CUDA_ERROR_INVALID_VALUE", "an argument is out of range"},
	OutOfMemory:             {"CUDA_ERROR_OUT_OF_MEMORY", "no memory left"},
	NotInitialized:          {"CUDA_ERROR_NOT_INITIALIZED", "the driver is not initialised"},
	Deinitialized:           {"CUDA_ERROR_DEINITIALIZED", "the driver is shutting down"},
	StubLibrary:             {"CUDA_ERROR_STUB_LIBRARY", "the library is the toolkit's stub, not the driver; take its folder out of the search path"},
	NoDevice:                {"CUDA_ERROR_NO_DEVICE", "no card that the driver can use; CUDA_VISIBLE_DEVICES may hide it"},
	InvalidDevice:           {"CUDA_ERROR_INVALID_DEVICE", "no device of this number"},
	InvalidImage:            {"CUDA_ERROR_INVALID_IMAGE", "the module is damaged"},
	InvalidContext:          {"CUDA_ERROR_INVALID_CONTEXT", "no context is current on this thread"},
	NoBinaryForGPU:          {"CUDA_ERROR_NO_BINARY_FOR_GPU", "the module has no code for this card"},
	ECCUncorrectable:        {"CUDA_ERROR_ECC_UNCORRECTABLE", "the card's memory has an error that it cannot correct; nvidia-smi -q -d ECC says more"},
	PeerAccessUnsupported:   {"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "no way between these cards"},
	InvalidPTX:              {"CUDA_ERROR_INVALID_PTX", "the driver's compiler refused the module"},
	NVLinkUncorrectable:     {"CUDA_ERROR_NVLINK_UNCORRECTABLE", "the link between cards has an error that it cannot correct; nvidia-smi nvlink -e says more"},
	UnsupportedPTXVersion:   {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the driver is too old for the module; update it"},
	InvalidHandle:           {"CUDA_ERROR_INVALID_HANDLE", "a handle that does not exist"},
	NotFound:                {"CUDA_ERROR_NOT_FOUND", "no symbol of this name"},
	NotReady:                {"CUDA_ERROR_NOT_READY", "work is still under way"},
	IllegalAddress:          {"CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel accessed memory outside of its allocations"},
	OutOfResources:          {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "the launch needs more registers or shared memory than a multiprocessor has"},
	LaunchTimeout:           {"CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel ran too long"},
	PeerAlreadyEnabled:      {"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is on"},
	PeerNotEnabled:          {"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access is off"},
	ContextDestroyed:        {"CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context is gone"},
	Assert:                  {"CUDA_ERROR_ASSERT", "an assertion failed in a kernel"},
	HostMemoryRegistered:    {"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the memory is registered"},
	HostMemoryNotRegistered: {"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the memory is not registered"},
	IllegalInstruction:      {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel trapped"},
	MisalignedAddress:       {"CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel accessed a misaligned address"},
	LaunchFailed:            {"CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"},
	CooperativeTooLarge:     {"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "the grid does not fit on the card at once"},
	NotPermitted:            {"CUDA_ERROR_NOT_PERMITTED", "not permitted"},
	NotSupported:            {"CUDA_ERROR_NOT_SUPPORTED", "not supported here"},
	SystemNotReady:          {"CUDA_ERROR_SYSTEM_NOT_READY", "the system's services are not ready; is the fabric manager running?"},
	DriverMismatch:          {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "the kernel module and the driver library have different versions; reboot after an update"},
	CompatNotSupported:      {"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "the forward-compatibility package does not serve this card"},
	Unknown:                 {"CUDA_ERROR_UNKNOWN", "unknown error; the kernel's log may say more"},
}

// String is the result's name in cuda.h, or its number.
func (r Result) String() string {
	if n, ok := names[r]; ok {
		return n.name
	}
	return fmt.Sprintf("CUDA error %d", int32(r))
}

// Sticky reports whether the context stays in this error until it is destroyed.
func (r Result) Sticky() bool {
	switch r {
	case ECCUncorrectable, NVLinkUncorrectable, IllegalAddress, LaunchTimeout, Assert, IllegalInstruction, MisalignedAddress, LaunchFailed, ContextDestroyed:
		return true
	}
	return r >= 714 && r <= 719
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
	if n, ok := names[e.Result]; ok {
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
