package gpusim

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
)

// The words of the parts that those who use a Device speak.
type (
	Code     = memory.Code     // an error of the CUDA driver, with its number
	Error    = memory.Error    // a request that the device refuses
	Check    = check.Check     // a set of checks
	Finding  = check.Finding   // what a check found
	Place    = check.Place     // an instruction of a kernel
	Span     = check.Span      // memory that a launch touched
	Ahead    = check.Ahead     // what the launch ahead touched
	Fault    = check.Fault     // an error of a running kernel
	Physical = memory.Physical // memory without an address
	Numerics = warp.Numerics   // a model of the tensor cores' arithmetic
	Debugger = warp.Debugger   // looks at a launch while it runs
)

// The codes that a launch or a memory operation may end with.
const (
	InvalidValue       = memory.InvalidValue
	OutOfMemory        = memory.OutOfMemory
	InvalidPTX         = memory.InvalidPTX
	NotFound           = memory.NotFound
	IllegalAddress     = memory.IllegalAddress
	OutOfResources     = memory.OutOfResources
	LaunchTimeout      = memory.LaunchTimeout
	Assert             = memory.Assert
	IllegalInstruction = memory.IllegalInstruction
	MisalignedAddress  = memory.MisalignedAddress
	LaunchFailed       = memory.LaunchFailed
)

// Granularity is what memory is mapped in multiples of, in bytes.
const Granularity = memory.Granularity

// The checks.
const (
	Memcheck    = check.Memcheck
	Initcheck   = check.Initcheck
	Synccheck   = check.Synccheck
	Racecheck   = check.Racecheck
	Globalcheck = check.Globalcheck
	AllChecks   = check.AllChecks
)

// The models of tensor cores.
const (
	Float32    = warp.Float32
	Exact      = warp.Exact
	Truncating = warp.Truncating
)
