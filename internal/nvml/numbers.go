package nvml

import (
	"fmt"
	"math"
)

// Return is an nvmlReturn_t.
type Return int32

// The results that somebody tells apart, by their numbers in nvml.h.
const (
	Success           Return = 0
	NotSupported      Return = 3
	NoPermission      Return = 4
	NotFound          Return = 6
	InsufficientSize  Return = 7
	DriverNotLoaded   Return = 9
	FunctionNotFound  Return = 13
	GPUIsLost         Return = 15
	ResetRequired     Return = 16
	OperatingSystem   Return = 17
	VersionMismatch   Return = 18
	NoData            Return = 21
	ArgumentVersion   Return = 25
	GPUNotFound       Return = 28
	unreasonableCount Return = math.MinInt32 // what the library told cannot be; no result of its own
)

var names = map[Return]string{
	0: "SUCCESS", 1: "ERROR_UNINITIALIZED", 2: "ERROR_INVALID_ARGUMENT", 3: "ERROR_NOT_SUPPORTED", 4: "ERROR_NO_PERMISSION",
	5: "ERROR_ALREADY_INITIALIZED", 6: "ERROR_NOT_FOUND", 7: "ERROR_INSUFFICIENT_SIZE", 8: "ERROR_INSUFFICIENT_POWER",
	9: "ERROR_DRIVER_NOT_LOADED", 10: "ERROR_TIMEOUT", 11: "ERROR_IRQ_ISSUE", 12: "ERROR_LIBRARY_NOT_FOUND", 13: "ERROR_FUNCTION_NOT_FOUND",
	14: "ERROR_CORRUPTED_INFOROM", 15: "ERROR_GPU_IS_LOST", 16: "ERROR_RESET_REQUIRED", 17: "ERROR_OPERATING_SYSTEM",
	18: "ERROR_LIB_RM_VERSION_MISMATCH", 19: "ERROR_IN_USE", 20: "ERROR_MEMORY", 21: "ERROR_NO_DATA", 22: "ERROR_VGPU_ECC_NOT_SUPPORTED",
	23: "ERROR_INSUFFICIENT_RESOURCES", 24: "ERROR_FREQ_NOT_SUPPORTED", 25: "ERROR_ARGUMENT_VERSION_MISMATCH", 26: "ERROR_DEPRECATED",
	27: "ERROR_NOT_READY", 28: "ERROR_GPU_NOT_FOUND", 29: "ERROR_INVALID_STATE", 30: "ERROR_RESET_TYPE_NOT_SUPPORTED", 999: "ERROR_UNKNOWN",
}

// String is the result's name in nvml.h, or its number.
func (r Return) String() string {
	if name, ok := names[r]; ok {
		return "NVML_" + name
	}
	if r == unreasonableCount {
		return "a number that cannot be"
	}
	return fmt.Sprintf("NVML result %d", int32(r))
}

// why says in words why a card does not tell something.
func (r Return) why() string {
	switch r {
	case NotSupported:
		return "this card does not tell"
	case NoPermission:
		return "only an administrator may read it"
	case FunctionNotFound, ArgumentVersion:
		return "this driver does not tell"
	case NoData, NotFound:
		return "nothing has been measured yet"
	case GPUIsLost:
		return "the card has fallen off the bus: reboot, and look at its power and its seat"
	case ResetRequired:
		return "the card wants a reset: end what uses it, then nvidia-smi --gpu-reset"
	}
	return r.String()
}

// A Reason is why a card's clocks are below what they could be.
type Reason struct {
	Bit  uint64 `json:"-"`
	Name string `json:"name"`
	Text string `json:"text"` // with what to do
	Slow bool   `json:"slow"` // it costs speed of work that is under way
}

// reasons are nvml.h's nvmlClocksEventReasons.
var reasons = []Reason{
	{0x1, "idle", "nothing runs", false},
	{0x2, "application clocks", "the clocks were set lower: nvidia-smi --reset-gpu-clocks and --reset-applications-clocks take that back", true},
	{0x4, "power cap", "the power limit holds the clocks down: it is normal for heavy products; nvidia-smi -q -d POWER shows whether the limit was lowered", true},
	{0x8, "hardware slowdown", "the hardware halves the clocks or worse: heat or power; look at the reasons beside it", true},
	{0x10, "sync boost", "cards of a group run at the pace of the slowest", true},
	{0x20, "thermal", "the card is warmer than its target: more air, or fewer neighbours", true},
	{0x40, "hardware thermal", "the card is too hot: check fans and air before it harms itself", true},
	{0x80, "power brake", "the power supply asks for less: check cables and the supply", true},
	{0x100, "display clocks", "a display sets the clocks", true},
}

// ReasonsOf spells a mask out. Bits of later drivers are told by number.
func ReasonsOf(mask uint64) (out []Reason) {
	for _, r := range reasons {
		if mask&r.Bit != 0 {
			out = append(out, r)
			mask &^= r.Bit
		}
	}
	if mask != 0 {
		out = append(out, Reason{mask, fmt.Sprintf("reason %#x", mask), "this program does not know it: nvidia-smi -q -d PERFORMANCE may", true})
	}
	return out
}
