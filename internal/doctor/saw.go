package doctor

import (
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/drivers"
	"github.com/warpline-ml/warpline/internal/pyenv"
)

// This file tells what was seen to be well. A rule that finds nothing has not shown that all is well: its facts may be missing,
// or another rule may have said what is wrong. Only what these functions saw is said to be fine.

// all reports whether there are things and each is so.
func all[T any](of []T, is func(T) bool) bool {
	return len(of) > 0 && !slices.ContainsFunc(of, func(v T) bool { return !is(v) })
}

// everyCard reports of a figure that all cards of NVML tell it, and that it is so.
func (f *Facts) everyCard(key string, is func(v float64) bool) bool {
	return f.NVML.works() && all(f.NVML.Cards, func(c NVMLCard) bool { v, ok := c.value(key); return ok && is(v) })
}

func anyValue(float64) bool { return true }

func zero(v float64) bool { return v == 0 }

func positive(v float64) bool { return v > 0 }

// allCards reports whether NVML has every card of the bus.
func (f *Facts) allCards() bool { return f.hasCards() && len(f.NVML.Cards) >= len(f.cards()) }

func (f *Facts) computes() bool { return f.CUDA.works() && len(f.CUDA.Cards) > 0 }

func (f *Facts) sawRegisters() bool {
	return all(f.cards(), func(c PCI) bool { return c.Config != nil })
}

func (f *Facts) sawBusErrors() bool {
	return all(f.cards(), func(c PCI) bool { return c.Errors != nil })
}

func (f *Facts) sawRegions() bool {
	return all(f.cards(), func(c PCI) bool { return len(c.BARs) >= 2 })
}

func (f *Facts) sawOwners() bool {
	return all(f.cards(), func(c PCI) bool { return c.Driver == "nvidia" })
}

// trusted reports whether Secure Boot was seen to keep nothing out.
func (f *Facts) trusted() bool {
	return f.loaded() || f.Kernel.SecureBoot != nil && !*f.Kernel.SecureBoot
}

func (f *Facts) sawParams() bool { return f.Kernel.Params != nil }

func (f *Facts) sawUVM() bool { return f.UVM.Asked && f.UVM.Errno == "" && f.UVM.Status == 0 }

// sawNodes reports whether all nodes that computing takes are there.
func (f *Facts) sawNodes() bool { return f.node("/dev/nvidiactl").There && len(f.cardNodes()) > 0 }

func (f *Facts) sawNumbers() bool {
	return slices.ContainsFunc(f.Nodes, func(n Node) bool { _, known := f.major(n); return known && n.There })
}

// opens reports whether all nodes that computing takes open.
func (f *Facts) opens() bool {
	return f.sawNodes() && all(f.Nodes, func(n Node) bool { return !n.There || !n.needed() || n.Open == "ok" })
}

// keepsCards reports whether something makes containers keep their cards when systemd is told to reload.
func (f *Facts) keepsCards() bool {
	c := &f.Container
	return !f.contained() && (c.CharLink != nil && *c.CharLink || c.Cgroupfs || c.CDI != "")
}

func (f *Facts) lendsCards() bool {
	return f.Container.Runtime != nil && *f.Container.Runtime || f.Container.CDI != ""
}

func (f *Facts) sawLibraries() bool { return f.Libraries != nil }

func (f *Facts) sawLibcuda() bool {
	l := f.library(libcuda)
	return l.Path != "" && l.Bits == 64
}

func (f *Facts) sawSize() bool { return f.library(libcuda).Size > 0 }

// noCompat reports whether the loader takes the driver's own libcuda, or one for forward compatibility that works.
func (f *Facts) noCompat() bool {
	l := f.library(libcuda)
	return l.Path != "" && !strings.Contains(l.Path+l.Real, "/compat/") || f.computes()
}

// oneDriver reports whether libraries have versions, and all of them the kernel's.
func (f *Facts) oneDriver() bool {
	kernel := f.Kernel.Driver
	if f.Control.Version != "" {
		kernel = f.Control.Version
	}
	return all(f.versioned(), func(l Library) bool { return l.Version == kernel })
}

// companions are the libraries that must be of libcuda's version.
var companions = []string{libnvml, libjit, "libnvidia-nvvm.so.4"}

// oneSet reports whether companions of libcuda have versions, and all of them its own.
func (f *Facts) oneSet() bool {
	base, seen := f.library(libcuda).Version, 0
	for _, name := range companions {
		if v := f.library(name).Version; v == base && v != "" {
			seen++
		} else if v != "" {
			return false
		}
	}
	return seen > 0
}

func (f *Facts) sawJIT() bool { return f.library(libjit).Path != "" }

func (f *Facts) sawCache() bool { p, _ := f.place("cache"); return p.Writable != nil }

func (f *Facts) sawToolkit() bool { return f.toolkitNeeds() != "" }

func (f *Facts) sawCompute() bool {
	return slices.ContainsFunc(f.Libraries, func(l Library) bool { return isCompute(l.Name) && l.Path != "" && l.Bits == 64 })
}

// fabricReady reports whether CUDA computes behind the switches.
func (f *Facts) fabricReady() bool { return f.computes() && f.fabricCard() < 0 }

// inWindows reports whether libcuda is the one that Windows lends.
func (f *Facts) inWindows() bool {
	l := f.library(libcuda)
	return f.Platform.DXG && (strings.HasPrefix(l.Path, inWSL) || strings.HasPrefix(l.Real, inWSL))
}

// virtual is the mode in which a card is a part of another (NVML_GPU_VIRTUALIZATION_MODE_VGPU), which takes a licence.
const virtual = 2

// licensed reports whether there are virtual cards, and all of them say that they have their licence.
func (f *Facts) licensed() bool {
	return f.everyCard(keyVirtual, func(v float64) bool { return v == virtual }) && f.everyCard(keyLicensed, positive)
}

func (f *Facts) sawModes() bool { return f.everyCard(keyMode, zero) }

func (f *Facts) sawAddressSpace() bool { _, ok := f.Limits["as"]; return ok }

// ran reports whether --deep had cases.
func (f *Facts) ran() bool {
	return slices.ContainsFunc(f.Deep, func(d Deep) bool { return d.Cases > 0 })
}

func (f *Facts) sawRank() bool {
	_, err := strconv.Atoi(f.Env["LOCAL_RANK"])
	return err == nil
}

// sameOrder reports whether CUDA and NVML list the same cards in the same order.
func (f *Facts) sameOrder() bool {
	return slices.EqualFunc(f.CUDA.Cards, f.NVML.Cards, func(a CUDACard, b NVMLCard) bool { return a.Bus != "" && a.Bus == b.Bus })
}

// sameCards reports whether a process was started with the selection of cards that this shell has.
func (f *Facts) sameCards() bool {
	return f.Env != nil && all(selecting, func(name string) bool {
		theirs, has := f.Process.Env[name]
		ours, have := f.Env[name]
		return has == have && theirs == ours
	})
}

func (f *Facts) sawDisplay() bool {
	return f.everyCard(keyDisplay, anyValue) && f.everyCard(keyFree, anyValue) && f.everyCard(keyTotal, positive) && f.Env[visible] == ""
}

// listed reports whether Windows' list of devices has the cards: it alone tells of their state.
func (f *Facts) listed() bool {
	return all(f.ours(), func(a Adapter) bool { return a.Source == "registry" })
}

func (f *Facts) sawStarted() bool {
	return all(f.ours(), func(a Adapter) bool { return a.Source == "registry" && a.Problem == 0 && !basic(a) })
}

func (f *Facts) sawWindowsCUDA() bool { return f.library("nvcuda.dll").Path != "" }

func (f *Facts) sawShared() bool { p, _ := f.place("shm"); return p.Total > 0 }

func (f *Facts) pins() bool {
	v, ok := f.Limits["memlock"]
	return ok && (v < 0 || v >= leastLocked)
}

func (f *Facts) sawFiles() bool { _, ok := f.Limits["nofile"]; return ok }

// sawMemory reports whether the control group's memory can be compared with the machine's.
func (f *Facts) sawMemory() bool { return f.Cgroup.Memory == 0 || f.Memory.Total > 0 }

func (f *Facts) sawTmp() bool { p, _ := f.place("tmp"); return p.Total > 0 }

func (f *Facts) sawDisk() bool { p, _ := f.place("work"); return p.Type != "" }

// countsErrors reports whether every card counts errors of its memory, in one of the ways that cards have.
func (f *Facts) countsErrors() bool {
	return all(f.NVML.Cards, func(c NVMLCard) bool {
		return slices.ContainsFunc([]string{keyECCErrors, keyRemapped, keyRetiredSBE, keyRetiredDBE}, func(key string) bool { _, ok := c.value(key); return ok })
	})
}

func (f *Facts) answering() bool {
	return f.hasCards() && all(f.NVML.Cards, func(c NVMLCard) bool { return c.Failed == "" && c.Code == 0 })
}

func (f *Facts) linked() bool {
	some := slices.ContainsFunc(f.NVML.Cards, func(c NVMLCard) bool { return len(c.Links) > 0 })
	return some && all(f.NVML.Cards, func(c NVMLCard) bool { return !slices.Contains(c.Links, false) })
}

func (f *Facts) sawPending() bool {
	return all(f.NVML.Cards, func(c NVMLCard) bool {
		_, ecc := c.value(keyECCPending)
		_, mig := c.value(keyMIGPending)
		return ecc || mig
	})
}

func (f *Facts) connected() bool {
	return all(f.NVML.Peers, func(p Peer) bool { return p.Status == 0 })
}

// loadedCard reports whether a card is at work and tells its clocks: an idle one is not judged.
func (f *Facts) loadedCard() bool {
	return slices.ContainsFunc(f.NVML.Cards, func(c NVMLCard) bool {
		return c.Values[keyUtilization] >= BusyPercent && c.Values[keyClock] > 0 && c.Values[keyClockMax] > 0
	})
}

func (f *Facts) sawPowerLimits() bool {
	return f.everyCard(keyPowerLimit, positive) && f.everyCard(keyPowerUsual, positive)
}

// sawLinks reports whether the widths of all cards' links are known, of the bus or of NVML.
func (f *Facts) sawLinks() bool {
	if len(f.cards()) > 0 {
		return all(f.cards(), func(c PCI) bool { return c.Link != nil && c.Link.Width > 0 && c.Link.MaxWidth > 0 })
	}
	return f.everyCard(keyWidth, positive) && f.everyCard(keyWidthMax, positive)
}

func (f *Facts) sawProfiling() bool { _, ok := f.Kernel.Params["RmProfilingAdminOnly"]; return ok }

// stays reports whether something keeps the driver up.
func (f *Facts) stays() bool {
	return f.Kernel.Persistent || all(f.NVML.Cards, func(c NVMLCard) bool { return c.is(keyPersistence, 1) || c.is(keyDisplay, 1) })
}

// placed reports whether it is known where this process may run and where each card is.
func (f *Facts) placed() bool {
	allowed := f.CPU.Affinity
	if f.Process != nil && f.Process.Affinity != "" {
		allowed = f.Process.Affinity
	}
	return len(cpuSet(allowed)) > 0 && all(f.cards(), func(c PCI) bool { return c.Numa != nil && *c.Numa >= 0 && c.CPUs != "" })
}

func (f *Facts) sawProcessors() bool {
	return f.CPU.Governor != "" && f.CPU.Allowed > 0 && f.count() > 0
}

// named reports whether it is known of every card's memory whose it is.
func (f *Facts) named() bool {
	return all(f.NVML.Cards, func(c NVMLCard) bool {
		_, used := c.value(keyUsed)
		return used && c.Values[keyDisplay] == 0 && !c.is(keyMIG, 1) && !slices.ContainsFunc(c.Processes, func(p NVMLProcess) bool { return p.Memory == nil })
	})
}

func (f *Facts) ownMemory() bool { return f.everyCard(keyTotal, positive) }

func (f *Facts) sawTime() bool { return f.CPU.Busy >= 0.01 }

// Of builds.

func sawDevice(_ *Facts, b build) bool { return b.Device != "" }

// served reports whether a build has code for every card.
func served(f *Facts, b build) bool {
	return b.Device == "cuda" && all(f.chips(), func(c chip) bool { _, ok := b.Serves(c.compute); return ok })
}

// sawFloor reports whether it is known which drivers run a build.
func sawFloor(f *Facts, b build) bool {
	return b.Device == "cuda" && drivers.Min(b.CUDA, f.system()) != ""
}

// recorded reports whether a build's package says which libraries it was installed with.
func recorded(_ *Facts, b build) bool {
	return b.Name == "torch" && b.Device == "cuda" && b.Environment.Package("torch") != nil
}

func (f *Facts) sawBuilds() bool { return len(f.builds()) > 0 }

// sawRequires reports whether a framework's package says what it asks for.
func (f *Facts) sawRequires() bool {
	return slices.ContainsFunc(f.builds(), func(b build) bool {
		p := b.Environment.Package("torch")
		return b.Name == "torch" && p != nil && len(p.Requires) > 0
	})
}

func (f *Facts) sawTorch() bool {
	return slices.ContainsFunc(f.builds(), func(b build) bool { return b.Name == "torch" && b.Active() })
}

// sawLoader reports whether there are a framework's own libraries that others could come before.
func (f *Facts) sawLoader() bool {
	return f.OS == "linux" && slices.ContainsFunc(f.builds(), func(b build) bool { return b.Device == "cuda" && len(b.Environment.Packages) > 0 })
}

func (f *Facts) sawInterpreter() bool {
	return slices.ContainsFunc(f.Python.Environments, func(e *pyenv.Environment) bool { return e.Active() && e.Interpreter != "" })
}

func (f *Facts) sawMachine() bool {
	return slices.ContainsFunc(f.builds(), func(b build) bool { return b.Name == "torch" && b.Active() && b.Machine != "" })
}

func (f *Facts) sawRelease() bool { return len(parts(f.Platform.Release)) > 0 }
