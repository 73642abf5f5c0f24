package xid

import (
	"regexp"
	"strconv"
)

// Kinds of messages in the kernel's log.
const (
	FallenOff        = "fallen-off"
	PCIeUncorrected  = "pcie-uncorrected"
	PCIeCorrected    = "pcie-corrected"
	PCIeLimited      = "pcie-limited"
	InitFailed       = "init-failed"      // RmInitAdapter
	NoFirmware       = "no-firmware"      // of the GSP
	InvalidRegion    = "invalid-region"   // of the card's memory on the bus
	Mismatch         = "version-mismatch" // of a client and the module
	NoCard           = "no-card"
	OtherDriver      = "other-driver" // has the card
	NeedsOpen        = "needs-open"   // the open flavour
	NeedsClosed      = "needs-closed" // the proprietary one
	Unsupported      = "unsupported"  // by this branch of the driver
	KeyRejected      = "key-rejected" // a module's signature
	PowerCable       = "power-cable"
	CorruptInfoROM   = "corrupt-inforom"
	PeerMemory       = "peer-memory"
	OutOfMemory      = "oom-kill"       // of the host: a process was killed
	MemoryConstraint = "oom-constraint" // whose limit it was
	MemoryInvoked    = "oom-invoked"    // who asked, or was reaped
)

// Message is a kind of line in the kernel's log that tells of an illness.
type Message struct {
	Kind string
	Rule string         // of the finding that it belongs to
	form *regexp.Regexp // with the card's address as group "bus", and the killed process as group "process"
}

// address is a card's on the bus.
const address = `(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?)`

// messages are those of NVIDIA's driver (kernel-open/nvidia, osapi.c, osinit.c), of the PCI bus and of the memory manager
// (mm/oom_kill.c). The first that fits a line takes it.
var messages = []Message{
	{FallenOff, "D48", regexp.MustCompile(`(?:GPU (?:at )?(?:PCI:)?` + address + `.*)?(?:GPU )?has fallen off the bus|NVRM: fallen off the bus and is not responding`)},
	{PCIeUncorrected, "D48", regexp.MustCompile(address + `: (?:AER: )?PCIe Bus Error: severity=Uncorrect`)},
	{PCIeCorrected, "D55", regexp.MustCompile(address + `: (?:AER: )?PCIe Bus Error: severity=Correct`)},
	{PCIeLimited, "D55", regexp.MustCompile(address + `: .*available PCIe bandwidth, limited by`)},
	{InitFailed, "D30", regexp.MustCompile(`NVRM: (?:GPU ` + address + `: )?RmInitAdapter failed`)},
	{NoFirmware, "D30", regexp.MustCompile(`Cannot initialize GSP firmware|[Ff]ailed to load firmware.*nvidia.*gsp|RmFetchGspRmImages|gsp_\w+\.bin.*(?:fail|error)`)},
	{InvalidRegion, "D31", regexp.MustCompile(`This PCI I/O region assigned to your NVIDIA device is invalid`)},
	{Mismatch, "D04", regexp.MustCompile(`NVRM: API mismatch|API mismatch: the client .*has the version [\d.]+`)},
	{NoCard, "D01", regexp.MustCompile(`NVRM: No NVIDIA (?:GPU found|PCI devices found|devices)`)},
	{OtherDriver, "D28", regexp.MustCompile(`NVRM: The NVIDIA probe routine was not called|another driver was loaded and obtained ownership`)},
	{NeedsOpen, "D29", regexp.MustCompile(`requires? use of the NVIDIA open kernel modules`)},
	{NeedsClosed, "D29", regexp.MustCompile(`is not supported by open\b|not include the required GPU\s+System Processor`)},
	{Unsupported, "D29", regexp.MustCompile(`is not supported by the NVIDIA|NVIDIA \S+ driver release|supported through the NVIDIA \S+ Legacy drivers`)},
	{KeyRejected, "D27", regexp.MustCompile(`Loading of (?:unsigned )?module.*is rejected|Loading of module with unavailable key|Lockdown: modprobe: unsigned module loading is restricted|(?i:nvidia.*(?:key was rejected|required key not available))`)},
	{PowerCable, "D53", regexp.MustCompile(address + `.*does not have the necessary power cables|does not have the necessary power cables|[Pp]ower (?:cable|connector)s? .*connected`)},
	{CorruptInfoROM, "D51", regexp.MustCompile(`(?i)infoROM.*corrupt`)},
	{PeerMemory, "D47", regexp.MustCompile(`nvidia-peermem .*ERROR detected invalid context`)},
	{OutOfMemory, "D43", regexp.MustCompile(`(?:Out of memory|Memory cgroup out of memory): Kill(?:ed)? process \d+(?:, UID \d+,)? \((?P<process>[^)]*)\)`)},
	{MemoryConstraint, "D43", regexp.MustCompile(`oom-kill:constraint=\w+`)},
	{MemoryInvoked, "D43", regexp.MustCompile(`\S+ invoked oom-killer|oom_reaper: reaped process \d+ \([^)]*\)`)},
}

// MessageKinds are the kinds of all messages, in their order.
func MessageKinds() (kinds []string) {
	for _, m := range messages {
		kinds = append(kinds, m.Kind)
	}
	return kinds
}

// MessageOf is what a line of the kernel's log tells, or nil; bus and process are "" where it does not name them.
func MessageOf(line string) (m *Message, bus, process string) {
	for i := range messages {
		m := &messages[i]
		found := m.form.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		group := func(name string) string {
			if n := m.form.SubexpIndex(name); n > 0 {
				return found[n]
			}
			return ""
		}
		return m, group("bus"), group("process")
	}
	return nil, "", ""
}

var errorLine = regexp.MustCompile(`NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+),?(?: pid='?([^',]*)'?,)?(?: name='?([^',]*)'?,)?`)

// Error is a numbered error of the driver in a line of the kernel's log.
type Error struct {
	Code
	Bus          string
	PID, Process string // as the line has them
}

// ErrorOf is the numbered error that a line of the kernel's log has.
func ErrorOf(line string) (e Error, ok bool) {
	m := errorLine.FindStringSubmatch(line)
	if m == nil {
		return e, false
	}
	n, _ := strconv.Atoi(m[2])
	return Error{Of(n), m[1], m[3], m[4]}, true
}

// Limits at which a card is to be replaced, by DCGM (common/DcgmGPUHardwareLimits.h), and for SRAM by NVIDIA's guide to RMA.
const (
	MostRetired  = 63  // pages of memory
	MostRemapped = 512 // rows of memory
	MostSRAM     = 4   // errors of SRAM that were not corrected, in the card's life
)
