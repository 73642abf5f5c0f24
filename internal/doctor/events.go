package doctor

import "github.com/warpline-ml/warpline/internal/xid"

// Kinds of events in the kernel's log: numbered errors, and of package xid's messages those that a live machine is judged by.
const (
	Xid            = "xid"
	FallenOff      = xid.FallenOff
	InitFailed     = xid.InitFailed
	NoFirmware     = xid.NoFirmware
	Unsupported    = xid.Unsupported
	NeedsOpen      = xid.NeedsOpen
	NeedsClosed    = xid.NeedsClosed
	Mismatch       = xid.Mismatch
	KeyRejected    = xid.KeyRejected
	OtherDriver    = xid.OtherDriver
	InvalidRegion  = xid.InvalidRegion
	PowerCable     = xid.PowerCable
	CorruptInfoROM = xid.CorruptInfoROM
	OutOfMemory    = xid.OutOfMemory
)

// EventKinds are all of them.
var EventKinds = []string{Xid, FallenOff, InitFailed, NoFirmware, Unsupported, NeedsOpen, NeedsClosed, Mismatch, KeyRejected, OtherDriver, InvalidRegion,
	PowerCable, CorruptInfoROM, OutOfMemory}
