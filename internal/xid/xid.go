// Package xid is what the kernel's log says of cards: the numbers of the errors of NVIDIA's driver and what to do about them,
// and the messages without one. The tables are the same for live machines and for logs of others.
//
// Names and actions follow NVIDIA's catalogue of Xid errors (docs.nvidia.com/deploy/xid-errors) and the open driver's
// nverror.h.
package xid

import (
	"fmt"
	"slices"
)

// Class is who is to act on an error.
type Class string

// The classes, the worst first.
const (
	Reboot   Class = "reboot the node"
	Replace  Class = "replace the card"
	Reset    Class = "reset the card"
	Power    Class = "check power"
	Link     Class = "check links"
	Software Class = "update software"
	Unknown  Class = "look it up"
	Program  Class = "restart the program"
	Ignore   Class = "no action"
)

// Classes are all, the worst first.
var Classes = []Class{Reboot, Replace, Reset, Power, Link, Software, Unknown, Program, Ignore}

// Code is what a number means.
type Code struct {
	Number int
	Name   string
	Class  Class
	Rule   string // of the finding that it belongs to
}

// codes are those that are known; a range has one name.
var codes = []struct {
	from, to int
	name     string
	class    Class
	rule     string
}{
	{8, 8, "a channel stopped (timeout)", Program, "D50"},
	{13, 13, "graphics engine exception: an address or an instruction of a kernel", Program, "R04"},
	{31, 31, "memory page fault: a kernel's bad address", Program, "R04"},
	{32, 32, "corrupted push buffer", Program, "R04"},
	{37, 38, "firmware error of the driver", Ignore, "D50"},
	{39, 41, "copy engine exception", Program, "R04"},
	{43, 43, "the program's channel was stopped after an error of its own", Program, "R04"},
	{44, 44, "fault during a context switch", Ignore, "R04"},
	{45, 45, "cleanup after an error before it", Ignore, "R04"},
	{46, 46, "the card stopped processing", Reset, "D50"},
	{48, 48, "double-bit ECC error", Reset, "D49"},
	{54, 54, "auxiliary power is not connected", Power, "D53"},
	{60, 60, "video processor exception", Program, "R04"},
	{61, 62, "halt of a micro-controller of the card", Reset, "D50"},
	{63, 63, "a row or page of memory was remapped", Ignore, "D49"},
	{64, 64, "memory could not be remapped", Reset, "D49"},
	{66, 67, "illegal access by the driver", Ignore, "D50"},
	{68, 68, "video decoder exception", Program, "R04"},
	{69, 69, "graphics engine class error", Program, "R04"},
	{70, 72, "copy engine exception", Program, "R04"},
	{74, 74, "NVLink error", Link, "D52"},
	{75, 77, "copy engine exception", Program, "R04"},
	{78, 78, "a virtual GPU did not start", Software, "D22"},
	{79, 79, "the card has fallen off the bus", Reboot, "D48"},
	{80, 80, "corrupted data sent to the card", Program, "R04"},
	{82, 86, "video or copy engine exception", Program, "R04"},
	{92, 92, "many single-bit ECC errors", Ignore, "D49"},
	{93, 93, "InfoROM wear", Ignore, "D51"},
	{94, 94, "contained memory error", Program, "D49"},
	{95, 95, "uncontained memory error", Reset, "D49"},
	{106, 107, "test message", Ignore, "D50"},
	{109, 109, "context switch timeout", Reset, "D50"},
	{110, 110, "security fault", Reset, "D50"},
	{119, 119, "GSP RPC timeout: the card's firmware does not answer", Reset, "D50"},
	{120, 120, "error of the GSP, the card's firmware", Reset, "D50"},
	{121, 121, "chip-to-chip link error", Ignore, "D52"},
	{125, 125, "InfoROM error", Replace, "D51"},
	{126, 135, "copy engine exception", Program, "R04"},
	{136, 136, "NVLink training failed", Link, "D52"},
	{137, 137, "NVLink fault: an access of another card was refused", Link, "D52"},
	{140, 140, "ECC error that was not recovered", Reset, "D49"},
	{141, 141, "fast path error of CUDA", Ignore, "R04"},
	{143, 143, "the card did not initialise", Reset, "D50"},
	{144, 150, "NVLink error", Link, "D52"},
	{154, 154, "the recovery action changed: see the Xid before it", Ignore, "D50"},
	{155, 155, "NVLink error", Reset, "D52"},
	{156, 156, "a part of the card was retired", Reset, "D49"},
	{157, 157, "a part of the card could not be retired", Replace, "D49"},
	{158, 158, "fatal timeout of the card", Reset, "D50"},
	{167, 167, "fatal timeout of PCIe", Unknown, "D50"},
	{171, 172, "uncorrectable memory error", Reset, "D49"},
}

// Of is what a number means. Those that are not in the table are Unknown, without a name.
func Of(number int) Code {
	for _, c := range codes {
		if number >= c.from && number <= c.to {
			return Code{number, c.name, c.class, c.rule}
		}
	}
	return Code{number, "", Unknown, "D50"}
}

// Numbers are those of a rule and class, in their order.
func Numbers(rule string, classes ...Class) (all []int) {
	for _, c := range codes {
		if c.rule != rule || !slices.Contains(classes, c.class) {
			continue
		}
		for n := c.from; n <= c.to; n++ {
			all = append(all, n)
		}
	}
	return all
}

// String is "Xid 79 (the card has fallen off the bus)".
func (c Code) String() string {
	if c.Name == "" {
		return fmt.Sprintf("Xid %d, which this version does not know", c.Number)
	}
	return fmt.Sprintf("Xid %d (%s)", c.Number, c.Name)
}

// Illness is what findings of one rule say, whoever saw the numbers.
type Illness struct {
	Title, Fix, Disproved string
}

// Unexplained is what is said of numbers of class Unknown.
var Unexplained = Illness{"the driver reported an error of its own", "look the number up in NVIDIA's catalogue (docs.nvidia.com/deploy/xid-errors); if jobs failed then, sudo nvidia-bug-report.sh collects what its maker asks for",
	"no job failed at that time"}

// Ills are the illnesses by their rules.
var Ills = map[string]Illness{
	"R04": {"a program made an error of its own, which is not the card's", "run the program again under compute-sanitizer (with CUDA_LAUNCH_BLOCKING=1 for the line); only if the error moves with the card, and not with the program, suspect the card",
		"the same program makes no error on another card of the same model"},
	"D22": {"a virtual GPU has no licence, or its host's driver does not fit", "compare the versions of the host's and the guest's driver, and look at the licence: nvidia-smi -q | grep -i -A2 license", "the machine has a whole card"},
	"D48": {"a card has fallen off the bus", "cut the machine's power and start it again; if it comes back, look at power, riser and heat, and try lower clocks (nvidia-smi -lgc)", "nvidia-smi and lspci list the card without errors"},
	"D49": {"a card's memory had errors that were not corrected", "sudo nvidia-smi --gpu-reset after what uses the card has ended, then nvidia-smi -q -d ECC,ROW_REMAPPER: pending is mended by that, a failure is the maker's to replace", "the errors are of before the last reset"},
	"D50": {"a card stopped answering its driver", "sudo nvidia-smi --gpu-reset after what uses the card has ended, or reboot; a newer driver, with its firmware, if it comes again", "it happened once, and before the last start of the driver"},
	"D51": {"a card's own record (InfoROM) is damaged", "nvidia-smi -q | grep -A4 -i inforom; its maker flashes or replaces it", "nvidia-smi prints no warning of it"},
	"D52": {"links between cards are down or have errors", "nvidia-smi nvlink -s && nvidia-smi nvlink -e; a reset of all cards together brings links up, a card or bridge that is not seated keeps them down", "the machine was built with fewer links"},
	"D53": {"a card lacks power", "with the machine off, look at every power cable of the card and at the supply", "all cables are in, and the reason does not come again under load"},
}
