package doctor

// Kinds of events in the kernel's log.
const (
	Xid            = "xid"
	FallenOff      = "fallen-off"
	InitFailed     = "init-failed"      // RmInitAdapter
	NoFirmware     = "no-firmware"      // of the GSP
	Unsupported    = "unsupported"      // by this branch of the driver
	NeedsOpen      = "needs-open"       // the open flavour
	NeedsClosed    = "needs-closed"     // the proprietary one
	Mismatch       = "version-mismatch" // of a client and the module
	KeyRejected    = "key-rejected"     // a module's signature
	OtherDriver    = "other-driver"     // has the card
	InvalidRegion  = "invalid-region"
	PowerCable     = "power-cable"
	CorruptInfoROM = "corrupt-inforom"
	OutOfMemory    = "oom-kill"
)

// EventKinds are all of them.
var EventKinds = []string{Xid, FallenOff, InitFailed, NoFirmware, Unsupported, NeedsOpen, NeedsClosed, Mismatch, KeyRejected, OtherDriver, InvalidRegion,
	PowerCable, CorruptInfoROM, OutOfMemory}
