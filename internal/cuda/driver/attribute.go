package driver

// Attribute is a CUdevice_attribute.
type Attribute int32

// The attributes of devices that somebody asks for, by their numbers in cuda.h.
const (
	MaxThreadsPerBlock     Attribute = 1
	MaxBlockDimX           Attribute = 2
	MaxBlockDimY           Attribute = 3
	MaxBlockDimZ           Attribute = 4
	MaxGridDimX            Attribute = 5
	MaxGridDimY            Attribute = 6
	MaxGridDimZ            Attribute = 7
	MaxSharedPerBlock      Attribute = 8 // bytes, without opting in
	TotalConstant          Attribute = 9
	WarpSize               Attribute = 10
	MaxRegistersPerBlock   Attribute = 12
	ClockRate              Attribute = 13 // kHz
	MultiprocessorCount    Attribute = 16
	Integrated             Attribute = 18
	CanMapHostMemory       Attribute = 19
	ConcurrentKernels      Attribute = 31
	PCIBusID               Attribute = 33
	MemoryClockRate        Attribute = 36 // kHz
	MemoryBusWidth         Attribute = 37 // bits
	L2CacheSize            Attribute = 38 // bytes
	MaxThreadsPerSM        Attribute = 39
	AsyncEngineCount       Attribute = 40
	UnifiedAddressing      Attribute = 41
	ComputeMajor           Attribute = 75
	ComputeMinor           Attribute = 76
	MaxSharedPerSM         Attribute = 81 // bytes
	MaxRegistersPerSM      Attribute = 82
	ManagedMemory          Attribute = 83
	PageableMemoryAccess   Attribute = 88
	CooperativeLaunch      Attribute = 95
	MaxSharedPerBlockOptin Attribute = 97  // bytes
	VirtualMemory          Attribute = 102 // 1 where addresses and memory can be had apart
	MaxBlocksPerSM         Attribute = 106
	ReservedSharedPerBlock Attribute = 111
	MemoryPoolsSupported   Attribute = 115
	ClusterLaunch          Attribute = 120
)

// FuncAttribute is a CUfunction_attribute.
type FuncAttribute int32

// The attributes of functions.
const (
	FuncMaxThreadsPerBlock FuncAttribute = 0
	FuncSharedSize         FuncAttribute = 1 // bytes, static
	FuncConstSize          FuncAttribute = 2
	FuncLocalSize          FuncAttribute = 3 // bytes per thread
	FuncNumRegs            FuncAttribute = 4
	FuncPTXVersion         FuncAttribute = 5 // 74 for 7.4
	FuncBinaryVersion      FuncAttribute = 6 // 80 for sm_80
	FuncMaxDynamicShared   FuncAttribute = 8 // bytes; to be set beyond 48 KiB
	FuncPreferredCarveout  FuncAttribute = 9
)

// Flags of contexts, streams, events and host memory.
const (
	CtxSchedBlockingSync = 4 // waiting threads sleep
	StreamNonBlocking    = 1 // without implicit order to the default stream
	EventBlockingSync    = 1
	EventDisableTiming   = 2
	HostPortable         = 1 // pinned for all contexts
)

// The named streams.
const (
	StreamLegacy    Stream = 1
	StreamPerThread Stream = 2
)
