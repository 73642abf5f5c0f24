package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/render"
)

var speedRules = []rule{
	{id: "D39", name: "peers", step: P10, what: "cards copy to each other", can: func(f *Facts) bool { return f.NVML.works() && len(f.NVML.Peers) > 0 }, saw: (*Facts).connected, judge: peers},
	{id: "D39", name: "acs", step: P10, what: "no bridge sends copies between cards by way of the processor", can: func(f *Facts) bool { return f.several() && f.sawACS() }, saw: func(f *Facts) bool { return !f.Platform.Hypervisor }, judge: acs},
	{id: "D54", name: "throttled", step: P10, what: "nothing holds the clocks down", can: (*Facts).hasCards, saw: (*Facts).loadedCard, judge: throttled},
	{id: "D54", name: "power-limit", step: P10, what: "the power limits are the cards' own", can: (*Facts).hasCards, saw: (*Facts).sawPowerLimits, judge: powerLimit},
	{id: "D55", name: "narrow-link", step: P10, what: "the links to the cards have all of their lanes", can: func(f *Facts) bool { return len(f.cards()) > 0 || f.hasCards() }, saw: (*Facts).sawLinks, judge: narrowLink},
	{id: "D56", name: "counters-locked", step: P10, what: "profilers may read the cards' counters", can: func(f *Facts) bool {
		return f.loaded() && f.Kernel.Params != nil && f.Platform.UID != 0 && f.Kernel.Profiler
	}, saw: (*Facts).sawProfiling, judge: countersLocked},
	{id: "D57", name: "watchdog", step: P10, what: "no display's watchdog ends long kernels", can: func(f *Facts) bool { return len(f.CUDA.Cards) > 0 }, judge: watchdog},
	{id: "D59", name: "persistence", step: P10, what: "the driver stays up between jobs", can: func(f *Facts) bool { return f.hasCards() && f.OS == "linux" && !f.Platform.DXG }, saw: (*Facts).stays, judge: persistence},
	{id: "D60", name: "affinity", step: P10, what: "processes may run beside their card", can: func(f *Facts) bool { return f.CPU.Nodes > 1 && len(f.cards()) > 0 }, saw: (*Facts).placed, judge: affinity},
	{id: "D61", name: "processors", step: P10, what: "processors are quick and enough", can: func(f *Facts) bool { return f.CPU.Count > 0 && f.hasCard() }, saw: (*Facts).sawProcessors, judge: processors},
	{id: "D62", name: "variables", step: P10, what: "no variable slows programs down", can: func(f *Facts) bool { return f.Env != nil }, judge: variables},
	{id: "D63", name: "someone-else", step: P10, what: "the cards' memory is of processes that can be named", can: (*Facts).hasCards, saw: (*Facts).named, judge: someoneElse},
	{id: "D64", name: "shared-memory", step: P10, what: "the cards have memory of their own", can: func(f *Facts) bool { return f.hasCards() || f.Platform.Tegra }, saw: (*Facts).ownMemory, judge: unified},
	{id: "D66", name: "steal", step: P10, what: "the hypervisor leaves the processors alone", can: func(f *Facts) bool { return f.Platform.Hypervisor && f.CPU.Count > 0 }, saw: (*Facts).sawTime, judge: steal},
	{id: "P10", name: "stuck", step: P10, what: "the process makes progress as far as the system can see", can: func(f *Facts) bool { return f.Process != nil && f.Process.State != "" }, judge: stuckProcess},
	{id: "D04", name: "replaced-under", step: P10, what: "the process has the driver's files that are installed", can: func(f *Facts) bool { return f.Process != nil && len(f.Process.Libraries) > 0 }, judge: replaced},
}

// peerWhy are NVML's reasons (nvmlGpuP2PStatus_t).
var peerWhy = map[int]string{1: "the chipset does not support it", 2: "the GPU does not", 3: "the bus between them does not", 4: "it was turned off by the driver's settings", 5: "it is not supported"}

func peers(f *Facts) []ill {
	var bad []Peer
	for _, p := range f.NVML.Peers {
		if p.Status != 0 && peerWhy[p.Status] != "" {
			bad = append(bad, p)
		}
	}
	geforce := slices.ContainsFunc(f.NVML.Cards, func(c NVMLCard) bool { return !datacentre(c.Name) })
	if len(bad) == 0 || geforce && bad[0].Status != 4 {
		return nil // cards for desktops have none: nothing to mend
	}
	return gains(one("cards cannot copy to each other directly", []finding.Evidence{value("p2p", bad[0].Status, "%d of %d pairs; from card %d to %d: %s", len(bad), len(f.NVML.Peers), bad[0].From, bad[0].To, peerWhy[bad[0].Status])},
		"nvidia-smi topo -p2p r", "virtual machines need cards passed through together; otherwise look at the firmware's settings of IOMMU and ACS", finding.Medium, "all_reduce reaches the links' speed"), "collectives without a detour by the host's memory")
}

func (f *Facts) sawACS() bool {
	return slices.ContainsFunc(f.cards(), func(c PCI) bool {
		return slices.ContainsFunc(c.Upstream, func(b Bridge) bool { return b.ACS != nil })
	})
}

// redirects are the bits of ACS that send requests between cards up to the root: source validation, request and completion
// redirect, upstream forwarding, as NCCL tests them.
const redirects = 0x1d

func acs(f *Facts) []ill {
	var bad []Bridge
	for _, c := range f.cards() {
		for _, b := range c.Upstream {
			if b.ACS != nil && *b.ACS&redirects != 0 && !slices.ContainsFunc(bad, func(o Bridge) bool { return o.Address == b.Address }) {
				bad = append(bad, b)
			}
		}
	}
	if len(bad) == 0 || f.Platform.Hypervisor {
		return nil
	}
	evidence := []finding.Evidence{value("acs", *bad[0].ACS, "control %#04x at %s", *bad[0].ACS, list(bad, func(b Bridge) string { return b.Address }))}
	if f.Kernel.IOMMU != nil {
		evidence = append(evidence, value("iommu", *f.Kernel.IOMMU, "%d IOMMUs are in use; the kernel's command line has: %s", *f.Kernel.IOMMU, orNone(strings.Join(f.Platform.CommandLine, " "))))
	}
	return gains(one("bridges send copies between cards by way of the processor (ACS): collectives are slow, hang, or are wrong", evidence, "sudo setpci -s "+bad[0].Address+" ECAP_ACS+6.w=0000",
		"for each of them, at each start; or turn ACS off in the firmware; NCCL_P2P_DISABLE=1 is a slow way around", finding.Medium, "copies from card to card arrive right and at the links' speed: warpline doctor --deep"), "copies between cards at their speed")
}

// holding are reasons of low clocks that cost work which is under way; idle is none.
const holding = 0x4 | 0x8 | 0x20 | 0x40

// leastHeld is the share of a window from which on holding a card down is told.
const leastHeld = 0.05

// HeldWindow is the time between two looks at the counters of what holds a card down that is at work. One look tells nothing: they
// count since the driver began.
const HeldWindow = 400 * time.Millisecond

// BusyPercent is from which share of the time at work a card's clocks are judged.
const BusyPercent = 50

func throttled(f *Facts) []ill {
	var evidence []finding.Evidence
	hot := false
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		busy, clock, top := c.Values[keyUtilization], c.Values[keyClock], c.Values[keyClockMax]
		heat := c.Reasons&(0x20|0x40) != 0
		if share, ok := c.value(keyHeatShare); ok {
			heat = share > leastHeld
		}
		share, measured := c.value(keyPowerShare)
		held := heat || !measured && c.Reasons&holding != 0 || share > leastHeld
		if !held || busy < BusyPercent || top == 0 || clock > 0.9*top && !heat {
			continue
		}
		hot = hot || heat
		if measured {
			evidence = append(evidence, value(keyPowerShare, share, "card %d, in a window of %s: power held it %s of the time, heat %s", c.Index, render.Duration(HeldWindow), render.Percent(share), render.Percent(c.Values[keyHeatShare])))
		}
		evidence = append(evidence, value("clock_reasons", c.Reasons, "card %d at work: %.0f of %.0f MHz, %.0f °C (slows down at %.0f), reasons %#x", c.Index, clock/1e6, top/1e6, c.Values[keyTemperature], c.Values[keySlowdownAt], c.Reasons))
	}
	if evidence == nil {
		return nil
	}
	if hot {
		return gains(one("heat holds the clocks of a card down", evidence, "nvidia-smi -q -d TEMPERATURE,PERFORMANCE", "more air: fans, dust, distance to the neighbour", finding.Medium, "the reasons go while the same work goes on"), "the clocks that are missing")
	}
	return gains(one("the power limit holds the clocks of a card down", evidence, "nvidia-smi -q -d POWER,PERFORMANCE", "it is normal for large products; a limit below the card's own is not", finding.Low, "the power limit is the card's own, and the work is products of matrices"), "the clocks that are missing")
}

func powerLimit(f *Facts) []ill {
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		if limit, own := c.Values[keyPowerLimit], c.Values[keyPowerUsual]; limit > 0 && own > 0 && limit < 0.97*own {
			return gains(one("somebody lowered the power limit of a card", []finding.Evidence{value(keyPowerLimit, limit, "card %d: %.0f W of %.0f W", c.Index, limit, own)},
				fmt.Sprintf("sudo nvidia-smi -i %d -pl %.0f", c.Index, own), "", finding.High, "the supply or the cooling needs it so"), "up to as much speed as power")
		}
	}
	return nil
}

func narrowLink(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, c := range f.cards() {
		hops := append([]Bridge{{Address: c.Address, Link: c.Link}}, c.Upstream...)
		if c.Link == nil {
			continue
		}
		for _, h := range hops {
			if h.Link != nil && h.Link.Width > 0 && h.Link.MaxWidth > 0 && h.Link.Width < c.Link.MaxWidth && h.Link.Width < h.Link.MaxWidth {
				evidence = append(evidence, value("width", h.Link.Width, "%s: %d of %d lanes", h.Address, h.Link.Width, h.Link.MaxWidth))
			}
		}
	}
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		if width, top := c.Values[keyWidth], c.Values[keyWidthMax]; len(f.cards()) == 0 && width > 0 && width < top { // no bus is listed: Windows
			evidence = append(evidence, value(keyWidth, width, "card %d: %.0f of %.0f lanes", c.Index, width, top))
		}
		if gen, top := c.Values[keyGen], c.Values[keyGenMax]; gen > 0 && gen < top && c.Values[keyUtilization] >= BusyPercent { // idle cards lower it
			evidence = append(evidence, value(keyGen, gen, "card %d at work: generation %.0f of %.0f", c.Index, gen, top))
		}
	}
	if evidence == nil {
		return nil
	}
	return gains(one("the link of a card to the machine is narrower or slower than both can", evidence, "sudo lspci -vv -d 10de: | grep -E 'LnkCap:|LnkSta:'", "reseat the card, or put it into a slot that has all lanes; the firmware's setting of the slot's generation must be Auto", finding.Medium, "the slot has no more lanes by its design"), "copies to and from the card at their speed")
}

func countersLocked(f *Facts) []ill {
	if f.Kernel.Params["RmProfilingAdminOnly"] != "1" {
		return nil
	}
	return gains(one("only root may profile kernels on this machine (ERR_NVGPUCTRPERM)", []finding.Evidence{value("RmProfilingAdminOnly", "1", "RmProfilingAdminOnly is 1, and this is user %d", f.Platform.UID)},
		"echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf", "then reboot; warpline train --profile needs no counters", finding.High, "ncu runs"), "Nsight Compute without sudo")
}

func watchdog(f *Facts) []ill {
	for _, c := range f.CUDA.Cards {
		if c.Watchdog {
			return gains(one("a card draws a screen: its watchdog ends kernels that take seconds (error 702)", []finding.Evidence{value("watchdog", true, "cuda:%d, %s, has a time limit for kernels", c.Index, c.Name)},
				"export CUDA_DEVICE_ORDER=PCI_BUS_ID && nvidia-smi -L", "take another card, or log out of the desktop, for kernels that are long; trainings' are not", finding.Low, "no program ended with error 702"), "kernels of any length")
		}
	}
	return nil
}

func persistence(f *Facts) []ill {
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		if c.is(keyPersistence, 0) && !f.Kernel.Persistent && c.Values[keyDisplay] == 0 {
			return gains(one("the driver goes to sleep between jobs: the first call of each takes seconds, and clock settings are lost", []finding.Evidence{value(keyPersistence, 0, "card %d has persistence off, and nvidia-persistenced does not run", c.Index)},
				"sudo systemctl enable --now nvidia-persistenced", "", finding.High, "a second program starts as slowly"), "seconds at the start of each job")
		}
	}
	return nil
}

func affinity(f *Facts) []ill {
	allowed, whose := f.CPU.Affinity, "this process"
	if f.Process != nil && f.Process.Affinity != "" {
		allowed, whose = f.Process.Affinity, fmt.Sprintf("process %d", f.Process.PID)
	}
	mine := cpuSet(allowed)
	if len(mine) == 0 {
		return nil
	}
	for _, c := range f.cards() {
		near := cpuSet(c.CPUs)
		if len(near) > 0 && c.Numa != nil && *c.Numa >= 0 && !overlap(mine, near) {
			return gains(one("a process may run on processors only that are far from a card", []finding.Evidence{value("affinity", allowed, "%s may use processors %s, %s is beside %s", whose, allowed, c.Address, c.CPUs)},
				fmt.Sprintf("numactl --cpunodebind=%d --membind=%d COMMAND", *c.Numa, *c.Numa), "for the rank that uses the card", finding.Medium, "the process uses another card"), "copies to the card at full speed")
		}
	}
	return nil
}

func processors(f *Facts) []ill {
	var evidence []finding.Evidence
	do := "sudo cpupower frequency-set -g performance"
	if f.CPU.Governor == "powersave" && !strings.Contains(f.CPU.Scaling, "pstate") { // which call their usual mode so
		evidence = append(evidence, value("governor", f.CPU.Governor, "the processors' governor is powersave"))
	}
	if n := f.count(); n > 0 && f.CPU.Allowed < 2*n {
		evidence = append(evidence, value("cpus", f.CPU.Allowed, "%d processors for %d cards: one launches, others must load", f.CPU.Allowed, n))
		if len(evidence) == 1 {
			do = "taskset -pc $$"
		}
	}
	if evidence == nil {
		return nil
	}
	return gains(one("processors are slow or few for the cards: launches and loaders hold them up", evidence, do, "more processors come from the batch system or the container's settings", finding.Medium, "warpline diagnose TRACE says that the card is busy"), "steps that wait for no host")
}

// slowing are variables that cost time when they are left on, with the values that do; an empty value means any.
var slowing = []struct{ name, value, why string }{
	{"CUDA_LAUNCH_BLOCKING", "1", "waits for every kernel"},
	{"PYTORCH_NO_CUDA_MEMORY_CACHING", "1", "asks the driver for each tensor's memory"},
	{"CUDA_DEVICE_MAX_CONNECTIONS", "1", "puts all streams into one line, which only Megatron's tensor parallelism wants"},
	{"TORCH_CUDNN_DETERMINISTIC", "1", "takes slower convolutions"},
	{"CUBLAS_WORKSPACE_CONFIG", "", "may take slower products, for the sake of repeatability"},
	{"CUDA_MODULE_LOADING", "EAGER", "loads every kernel at the start"},
	{"NCCL_P2P_DISABLE", "1", "sends all between cards by the host's memory"},
	{"NCCL_SHM_DISABLE", "1", "sends all between processes over the network"},
	{"NCCL_IB_DISABLE", "1", "leaves InfiniBand unused"},
	{"NCCL_DEBUG", "TRACE", "writes a line for each call"},
	{"TORCH_DISTRIBUTED_DEBUG", "DETAIL", "checks every collective"},
	{"TORCH_SHOW_CPP_STACKTRACES", "1", "is for debugging"},
	{"NSIGHT_CUDA_DEBUGGER", "1", "is for debugging"},
	{"CUDA_INJECTION64_PATH", "", "loads a profiler into each program"},
	{"CUDA_INJECTION32_PATH", "", "loads a profiler into each program"},
	{"CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1", "is for debugging"},
	{"CUDA_DEVICE_WAITS_ON_EXCEPTION", "1", "is for debugging, and makes a failed kernel hang"},
	{"CUDA_PROFILE", "1", "is for profiling"},
	{"CUDA_FORCE_PTX_JIT", "1", "compiles every kernel anew"},
	{"WARPLINE_BLOCKING", "1", "waits for every kernel of this program"},
}

func variables(f *Facts) []ill {
	env, whose := f.Env, "here"
	if f.Process != nil && f.Process.Env != nil {
		env, whose = f.Process.Env, fmt.Sprintf("in process %d", f.Process.PID)
	}
	var evidence []finding.Evidence
	var names []string
	for _, s := range slowing {
		if v, ok := env[s.name]; ok && v != "" && (s.value == "" || strings.EqualFold(v, s.value)) {
			evidence, names = append(evidence, value(s.name, v, "%s=%s %s: %s", s.name, v, whose, s.why)), append(names, s.name)
		}
	}
	if evidence == nil {
		return nil
	}
	return gains(one("variables that slow programs down were left on", evidence, "unset "+strings.Join(names, " "), "where nobody wants them any more", finding.Medium, "a step takes as long without them"), "what they cost")
}

// unnamed is how much memory of a card may be of nobody: contexts of the driver's own, and what is not told in time.
const unnamed = 1 << 30

func someoneElse(f *Facts) []ill {
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		named, blind := 0.0, 0
		for _, p := range c.Processes {
			if p.Memory != nil {
				named += float64(*p.Memory)
			} else {
				blind++
			}
		}
		used := c.Values[keyUsed] - c.Values[keyReserved]
		if rest := used - named; rest > unnamed && blind == 0 && !c.is(keyMIG, 1) && c.Values[keyDisplay] == 0 {
			return gains(one("somebody who cannot be seen from here uses a card", []finding.Evidence{value(keyUsed, used, "card %d: %s are in use, %s of them by processes that are seen%s", c.Index, render.Bytes(int64(used)), render.Bytes(int64(named)), seenText(c))},
				"sudo fuser -v /dev/nvidia*", "on the host: another container or user, or a process that died and left its memory", finding.Medium, "nvidia-smi on the host lists the processes"), render.Bytes(int64(rest))+" of the card")
		}
	}
	return nil
}

func seenText(c *NVMLCard) string {
	if len(c.Processes) == 0 {
		return ""
	}
	return ": " + list(c.Processes, processText)
}

func unified(f *Facts) []ill {
	var evidence []finding.Evidence
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		if _, ok := c.value(keyTotal); !ok && c.Failed == "" {
			evidence = append(evidence, value(keyTotal, nil, "card %d, %s, tells no memory of its own", c.Index, c.Name))
		}
	}
	if v := f.Kernel.Params["CoherentGPUMemoryMode"]; v == "numa" {
		evidence = append(evidence, value("CoherentGPUMemoryMode", v, "CoherentGPUMemoryMode is numa: the host's programs may take the card's memory"))
	}
	if f.Platform.Tegra {
		evidence = append(evidence, value("tegra", true, "a Jetson: its GPU has the host's memory"))
	}
	if evidence == nil {
		return nil
	}
	return gains(one("card and host share memory: what programs of the host take is missing on the card", evidence, "free -h", "close what takes memory, and count the page cache as free; on GH200 CoherentGPUMemoryMode=driver keeps the host off", finding.Medium, "nvidia-smi shows memory of the card's own"), "memory that can be counted on")
}

func steal(f *Facts) []ill {
	if f.CPU.Steal <= 0.05 || f.CPU.Busy < 0.01 {
		return nil
	}
	return gains(one("the hypervisor takes processor time from this machine", []finding.Evidence{value("steal", f.CPU.Steal, "%s of the time since its start", render.Percent(f.CPU.Steal))}, "vmstat 1 5", "column st, while the program runs; a machine of one's own, or a larger one, has none", finding.Medium, "st is 0 while the program runs"), "processors that are there when they are needed")
}

func stuckProcess(f *Facts) []ill {
	p := f.Process
	switch {
	case p.State == "Z":
		return gains(one(fmt.Sprintf("process %d has ended, and its parent has not taken notice", p.PID), []finding.Evidence{value("state", p.State, "state Z")}, fmt.Sprintf("ps -o ppid= -p %d", p.PID), "end the parent; the card's memory is free already", finding.High, "ps shows another state"), "a process less")
	case p.State == "T" || p.State == "t":
		return gains(one(fmt.Sprintf("process %d is stopped", p.PID), []finding.Evidence{value("state", p.State, "state %s: a signal or a debugger stopped it", p.State)}, fmt.Sprintf("kill -CONT %d", p.PID), "", finding.High, "ps shows another state"), "a process that goes on")
	case p.State == "D" || p.Stuck > 0:
		return gains(one(fmt.Sprintf("process %d waits in the kernel and cannot be ended", p.PID), []finding.Evidence{value("wait", p.Wait, "state %s, %d of its threads so, in %s", p.State, p.Stuck, orNone(p.Wait))}, "sudo dmesg | grep -iE 'nvrm|xid|hung' | tail -20",
			"a driver or a disk does not answer: the kernel's log says which", finding.Medium, "it is another state a second later"), "a process that goes on")
	}
	return nil
}

func replaced(f *Facts) []ill {
	p := f.Process
	if p.Deleted == 0 {
		return nil
	}
	return gains(one(fmt.Sprintf("process %d has files of the driver that were replaced since it began", p.PID), []finding.Evidence{value("deleted", p.Deleted, "%d of its libraries of NVIDIA's are deleted", p.Deleted)}, "sudo reboot",
		"an update of the driver came: what is started now fails with a mismatch of versions until then", finding.High, "cat /proc/driver/nvidia/version has the libraries' version"), "programs that start")
}
