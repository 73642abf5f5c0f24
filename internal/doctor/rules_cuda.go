package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

// Keys of a card's figures that rules look at: those of package nvml, by their names there.
const (
	keyTotal       = "memory_total_bytes"
	keyUsed        = "memory_used_bytes"
	keyFree        = "memory_free_bytes"
	keyReserved    = "memory_reserved_bytes"
	keyUtilization = "utilization_percent"
	keyPowerLimit  = "power_limit_watts"
	keyPowerUsual  = "power_default_limit_watts"
	keyTemperature = "temperature_celsius"
	keySlowdownAt  = "slowdown_temperature_celsius"
	keyClock       = "sm_clock_hertz"
	keyClockMax    = "sm_clock_max_hertz"
	keyGen         = "pcie_generation"
	keyGenMax      = "pcie_max_generation"
	keyWidth       = "pcie_width_lanes"
	keyWidthMax    = "pcie_max_width_lanes"
	keyECC         = "ecc_enabled"
	keyECCPending  = "ecc_enabled_after_reset"
	keyECCErrors   = "ecc_uncorrected_errors_total"
	keyMIG         = "mig_enabled"
	keyMIGPending  = "mig_enabled_after_reset"
	keyMode        = "compute_mode"
	keyPersistence = "persistence_enabled"
	keyDisplay     = "display_active"
	keyRetiredSBE  = "retired_pages_corrected"
	keyRetiredDBE  = "retired_pages_uncorrected"
	keyRetiring    = "retired_pages_pending"
	keyRemapped    = "remapped_rows_uncorrected"
	keyRemapping   = "remapped_rows_pending"
	keyRemapFailed = "remapped_rows_failed"
	keyVirtual     = "virtualization_mode"
	keyFabric      = "fabric_state"
	keyFabricCode  = "fabric_status"
	keyPowerHeld   = "held_by_power_seconds"
	keyHeatHeld    = "held_by_heat_seconds"
	keyPowerShare  = HeldByPowerShare
	keyHeatShare   = HeldByHeatShare
	keyLicensed    = "licensed"
)

var cudaRules = []rule{
	{id: "D15", name: "fabric", step: P8, breaks: true, what: "the NVSwitches are set up", can: func(f *Facts) bool {
		return f.loaded() && (f.Fabric.Switches > 0 || f.cudaCode(802) || f.fabricCard() >= 0)
	}, saw: (*Facts).fabricReady, judge: fabric},
	{id: "D13", name: "hmm", step: P8, breaks: true, what: "the open module does not trip over HMM", can: (*Facts).loaded, saw: func(f *Facts) bool { return f.CUDA.works() }, judge: hmm},
	{id: "D36", name: "wsl", step: P6, breaks: true, what: "WSL has the driver of Windows, and no other", can: func(f *Facts) bool { return f.Platform.WSL }, saw: (*Facts).inWindows, judge: wsl},
	{id: "D22", name: "licence", step: P8, breaks: true, what: "the virtual GPU has its licence", can: func(f *Facts) bool { return f.hasCard() && (f.NVML.works() || f.CUDA.Asked && !f.CUDA.Missing) }, saw: (*Facts).licensed, judge: licence},
	{id: "D17", name: "mps", step: P8, breaks: true, what: "no dead MPS stands before the cards", can: (*Facts).loaded, saw: func(f *Facts) bool { return f.CUDA.works() }, judge: mps},
	{id: "D17", name: "mps-limits", step: P10, what: "MPS gives each process all of the card", can: func(f *Facts) bool { return f.MPS.Pipe || f.Env["CUDA_MPS_PIPE_DIRECTORY"] != "" }, saw: func(f *Facts) bool { return f.Env != nil }, judge: mpsLimits},
	{id: "D16", name: "compute-mode", step: P8, breaks: true, what: "no card is kept for one process", can: func(f *Facts) bool { return f.NVML.works() }, saw: (*Facts).sawModes, judge: computeMode},
	{id: "D44", name: "address-space", step: P8, breaks: true, what: "the address space has no limit", can: func(f *Facts) bool { return f.hasCard() && f.Limits != nil }, saw: (*Facts).sawAddressSpace, judge: addressSpace},
	{id: "P8", name: "deep", step: P8, breaks: true, what: "kernels compute and copies arrive (--deep)", can: func(f *Facts) bool { return len(f.Deep) > 0 }, saw: (*Facts).ran, judge: deepFailed},
}

// fabricCard is a card whose part of the fabric is not ready, or -1. States are those of nvml.h: 3 is completed, 0 not supported.
func (f *Facts) fabricCard() int {
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		if state, ok := c.value(keyFabric); ok && state != 0 && (state != 3 || c.Values[keyFabricCode] != 0) {
			return i
		}
	}
	return -1
}

func fabric(f *Facts) []ill {
	card := f.fabricCard()
	tool := f.Fabric.Tool
	other := tool != nil && tool.Version != "" && tool.Version != f.Kernel.Driver
	down := f.Fabric.Switches > 0 && !f.Fabric.Manager && !f.contained()
	if !f.cudaCode(802) && card < 0 && !down && !(other && f.Fabric.Switches > 0) || f.CUDA.works() && len(f.CUDA.Cards) > 0 && card < 0 {
		return nil
	}
	evidence := []finding.Evidence{value("switches", f.Fabric.Switches, "%d NVSwitches are on the bus; nv-fabricmanager is %s", f.Fabric.Switches, unless(f.Fabric.Manager, "running"))}
	if f.cudaCode(802) {
		evidence = append(evidence, value("cuInit", 802, "cuInit gives CUDA_ERROR_SYSTEM_NOT_READY"))
	}
	if card >= 0 {
		evidence = append(evidence, value("fabric_state", f.NVML.Cards[card].Values[keyFabric], "card %d is in state %.0f of its fabric, 3 is completed", card, f.NVML.Cards[card].Values[keyFabric]))
	}
	if other {
		evidence = append(evidence, value("version", tool.Version, "nv-fabricmanager is of %s, the driver of %s: they must be equal", tool.Version, f.Kernel.Driver))
	}
	branch, _, _ := strings.Cut(f.Kernel.Driver, ".")
	do := "sudo systemctl enable --now nvidia-fabricmanager"
	if other || tool != nil && !tool.There {
		do = fmt.Sprintf("sudo apt install nvidia-fabricmanager-%s=%s-1 && %s", branch, f.Kernel.Driver, do)
	}
	if f.contained() {
		return one("the NVSwitches of this machine are not set up", evidence, "systemctl status nvidia-fabricmanager", "typed on the host, where it must run", finding.High, "CUDA starts on the host")
	}
	return one("the NVSwitches of this machine are not set up: no card computes before that, also a single one", evidence, do,
		"its log is /var/log/fabricmanager.log; B200 and later need nvlsm too; reinstalling CUDA or PyTorch changes nothing; with confidential computing nvidia-smi conf-compute -srs 1 comes last", finding.High, "nvidia-smi -q says Fabric State: Completed")
}

func hmm(f *Facts) []ill {
	open := f.Kernel.Open != nil && *f.Kernel.Open
	on := f.Kernel.HMMOff != nil && !*f.Kernel.HMMOff
	v := parts(f.Kernel.Driver)
	if !f.cudaCode(3) || !open || !on || len(v) == 0 || v[0] < 570 || v[0] > 580 {
		return nil
	}
	return one("unified memory of the open module does not start on this kernel (HMM)", []finding.Evidence{value("cuInit", 3, "cuInit gives CUDA_ERROR_NOT_INITIALIZED while the rest of the driver works"),
		value("driver_kernel", f.Kernel.Driver, "the open module of %s, uvm_disable_hmm is N", f.Kernel.Driver)},
		"echo 'options nvidia_uvm uvm_disable_hmm=1' | sudo tee /etc/modprobe.d/uvm.conf && sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm", "or start the kernel with nokaslr", finding.High, "cuInit gives 3 with uvm_disable_hmm=1 too")
}

func wsl(f *Facts) []ill {
	l := f.library(libcuda)
	switch {
	case f.inWindows() || f.Platform.DXG && f.Libraries == nil:
		return nil
	case !f.Platform.DXG:
		return one("this Linux under WSL has no /dev/dxg, by which Windows lends its card", []finding.Evidence{value("dxg", false, "/dev/dxg is not there")}, "wsl.exe --update", "typed in Windows, then wsl --shutdown; it takes WSL 2: wsl -l -v shows which", finding.High, "ls /dev/dxg lists it")
	case l.Path == "":
		return one("Windows lends no NVIDIA driver to WSL", []finding.Evidence{value("libcuda", "", "/usr/lib/wsl/lib has no libcuda.so.1")}, "wsl.exe --update", "install NVIDIA's driver in Windows, never in WSL, then wsl --shutdown", finding.High, "ls /usr/lib/wsl/lib/libcuda.so.1 lists it")
	}
	return one("a Linux driver installed in WSL stands before that of Windows, and cannot work here", []finding.Evidence{value("path", l.Path, "the loader takes %s by %s in place of /usr/lib/wsl/lib/libcuda.so.1", l.Path, l.Why)},
		"sudo apt purge 'libnvidia-*' 'nvidia-driver-*' && sudo ldconfig", "toolkits (cuda-toolkit-…) may stay, packages named cuda or nvidia-driver must not", finding.High, "ldconfig -p lists that of /usr/lib/wsl/lib first")
}

func licence(f *Facts) []ill {
	evidence := f.xids("D22")
	for i := range f.NVML.Cards {
		if c := &f.NVML.Cards[i]; c.is(keyVirtual, virtual) && c.is(keyLicensed, 0) {
			evidence = append(evidence, value(keyLicensed, 0, "card %d is a virtual one, and NVML says that it is not licensed: it slows down", c.Index))
		}
	}
	if f.cudaCode(102) {
		evidence = append(evidence, value("cuInit", 102, "cuInit gives CUDA_ERROR_DEVICE_NOT_LICENSED"))
	}
	if evidence == nil {
		return nil
	}
	return one("the virtual GPU has no licence", evidence, "sudo systemctl restart nvidia-gridd", "after a client token is in /etc/nvidia/ClientConfigToken; nvidia-smi -q | grep -A2 License shows it", finding.High, "nvidia-smi -q says Licensed")
}

func mps(f *Facts) []ill {
	dead := f.MPS.Pipe && !f.MPS.Control
	code := f.cudaCode(805, 806, 807, 808, 809, 810)
	if !code && !(dead && f.cudaCode(46, 999)) && !(f.MPS.Control && f.MPS.UID != f.Platform.UID && f.cudaCode(46)) {
		return nil
	}
	return one("MPS stands before the cards and does not serve", []finding.Evidence{value("mps", f.CUDA.Code, "its control pipe is %s, its daemon %s, its server %s; cuInit gives %d", unless(f.MPS.Pipe, "there"), unless(f.MPS.Control, "running"), unless(f.MPS.Server, "running"), f.CUDA.Code)},
		"echo quit | nvidia-cuda-mps-control; rm -rf /tmp/nvidia-mps", "as the user that started it (the pipe is user "+itoa(f.MPS.UID)+"'s, this is user "+itoa(f.Platform.UID)+"); start it again if it is wanted", finding.High, "it fails without CUDA_MPS_PIPE_DIRECTORY and the pipe too")
}

func mpsLimits(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, name := range []string{"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"} {
		if v := f.Env[name]; v != "" && v != "100" {
			evidence = append(evidence, value(name, v, "%s=%s", name, v))
		}
	}
	if evidence == nil {
		return nil
	}
	return gains(one("MPS gives processes a part of the card only", evidence, "unset CUDA_MPS_ACTIVE_THREAD_PERCENTAGE CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "it explains a slow card, or one that is out of memory early", finding.High, "the share is wanted"), "all of the card")
}

func computeMode(f *Facts) []ill {
	var evidence []finding.Evidence
	shared := 0
	card := 0
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		switch mode, _ := c.value(keyMode); {
		case mode == 2:
			evidence, card = append(evidence, value(keyMode, 2, "card %d is prohibited to compute", c.Index)), c.Index
		case (mode == 3 || mode == 1) && (len(c.Processes) > 0 || f.cudaCode(46)):
			evidence, card = append(evidence, value(keyMode, 3, "card %d takes one process, and has: %s", c.Index, orUnseen(list(c.Processes, processText)))), c.Index
		default:
			shared++
		}
	}
	if evidence == nil && !f.cudaCode(46) {
		return nil
	}
	if evidence == nil {
		evidence = []finding.Evidence{value("cuInit", 46, "CUDA gives CUDA_ERROR_DEVICE_UNAVAILABLE")}
	}
	ills := one("a card is kept for one process, or for none", evidence, fmt.Sprintf("sudo nvidia-smi -i %d -c 0", card), "or wait for the process, or use MPS; CUDA_VISIBLE_DEVICES picks another card", finding.High, "nvidia-smi -q -d COMPUTE says Default")
	if shared > 0 {
		ills[0].Title += fmt.Sprintf("; %d others are free to use", shared)
	}
	return ills
}

func orUnseen(text string) string {
	if text == "" {
		return "none that is visible from here"
	}
	return text
}

func processText(p NVMLProcess) string {
	text := itoa(p.PID)
	switch {
	case p.Command != "":
		text += " (" + p.Command + ")"
	case !p.Visible:
		text += " (not visible from here)"
	}
	if p.Where != "" {
		text += " in " + p.Where
	}
	return text
}

func addressSpace(f *Facts) []ill {
	limit, ok := f.Limits["as"]
	tight := f.Memory.Overcommit == 2 && f.cudaCode(2)
	if !(ok && limit >= 0) && !tight {
		return nil
	}
	if tight && limit < 0 {
		return one("the system promises no memory that it does not have, and CUDA asks for much of that", []finding.Evidence{value("overcommit_memory", 2, "vm.overcommit_memory is 2, cuInit gives CUDA_ERROR_OUT_OF_MEMORY")}, "sudo sysctl vm.overcommit_memory=0", "", finding.Medium, "it fails with 0 too")
	}
	return one("the address space of this process has a limit, and CUDA reserves more than the memory of all cards", []finding.Evidence{value("as", limit, "ulimit -v is %d KiB", limit>>10)}, "ulimit -v unlimited", "in the shell, or in the batch system's settings", finding.High, "ulimit -v says unlimited")
}

// lastRules say what is wrong where no cause was found, so that nothing ends without a finding. Their ids are the steps'.
var lastRules = []rule{
	{id: "P7", name: "nvml", step: P7, breaks: true, what: "NVML answers", can: func(f *Facts) bool { return f.NVML.Asked && f.hasCard() }, saw: func(f *Facts) bool { return f.NVML.works() }, judge: nvmlFailed},
	{id: "P8", name: "cuda", step: P8, breaks: true, what: "CUDA starts", can: func(f *Facts) bool { return f.CUDA.Asked && f.hasCard() }, saw: func(f *Facts) bool { return f.CUDA.works() }, judge: cudaFailed},
}

// childFailed says of a child that it gave no answer.
func childFailed(c *Child, what, do string) []ill {
	switch {
	case c.TimedOut:
		at := c.At
		if at == "card" {
			at = fmt.Sprintf("card %d", c.AtCard)
		}
		return one(fmt.Sprintf("%s gave no answer in %d s", what, c.LimitS), []finding.Evidence{value("limit", c.LimitS, "%s was at: %s", c.Path, orNone(at))},
			do, "a driver that hangs is mended by a reboot; the kernel's log says what it waits for", finding.High, "nvidia-smi answers")
	case c.Signal != "":
		return one(what+" ended the process that asked it", []finding.Evidence{value("signal", c.Signal, "signal %s in %s, at: %s", c.Signal, c.Path, orNone(c.At))}, do, "the library is damaged, or another version than its neighbours", finding.High, "nvidia-smi answers")
	case c.Error != "" && !c.Missing:
		return one(what+" could not be asked", []finding.Evidence{value("error", "", "%s", c.Error)}, do, "", finding.Medium, "nvidia-smi answers")
	}
	return nil
}

func nvmlFailed(f *Facts) []ill {
	if ills := childFailed(&f.NVML.Child, "NVML", "sudo dmesg | grep -iE 'nvrm|xid' | tail -20"); ills != nil {
		return ills
	}
	if f.NVML.Code == 0 || f.Platform.Tegra {
		return nil
	}
	return one(fmt.Sprintf("NVML does not start: %s (%d)", f.NVML.Name, f.NVML.Code), []finding.Evidence{value("nvml", f.NVML.Code, "%s gives %s", f.NVML.Path, f.NVML.Name)},
		"sudo dmesg | grep -iE 'nvrm|xid' | tail -20", "the driver's last words there say more", finding.Medium, "nvidia-smi works")
}

func cudaFailed(f *Facts) []ill {
	if ills := childFailed(&f.CUDA.Child, "CUDA", "sudo dmesg | grep -iE 'nvrm|xid' | tail -20"); ills != nil {
		return ills
	}
	if f.CUDA.Code != 0 {
		return one(fmt.Sprintf("CUDA does not start: %s (%d)", f.CUDA.Name, f.CUDA.Code), []finding.Evidence{value("cuInit", f.CUDA.Code, "%s gives %s", f.CUDA.Path, f.CUDA.Name)},
			"sudo dmesg | grep -iE 'nvrm|xid' | tail -20", "the driver's last words there say more; nvidia-smi says whether the rest of it works", finding.Medium, "another CUDA program starts")
	}
	for _, c := range f.CUDA.Cards {
		if c.Code != 0 {
			return one(fmt.Sprintf("CUDA has card %d and tells nothing of it", c.Index), []finding.Evidence{value("code", c.Code, "code %d", c.Code)}, "nvidia-smi -q -i "+itoa(c.Index), "", finding.Medium, "nvidia-smi lists the card as the others")
		}
	}
	return nil
}

// deepCauses are results of CUDA that say why a card could not compute.
var deepCauses = []struct{ name, title, do, fix string }{
	{"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the driver is older than the kernels' PTX (D10)", "nvidia-smi", "it shows the driver's version: install a newer one"},
	{"CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "the driver's compiler of PTX is missing (D11)", "ldconfig -p | grep ptxjit", "in a container NVIDIA_DRIVER_CAPABILITIES must have compute"},
	{"CUDA_ERROR_JIT_COMPILATION_DISABLED", "the driver is told to compile no PTX (D11)", "unset CUDA_DISABLE_PTX_JIT", ""},
	{"CUDA_ERROR_NO_BINARY_FOR_GPU", "there are no kernels for this card (D09)", "warpline check --list", "a card older than sm_70 is not supported"},
	{"CUDA_ERROR_OUT_OF_MEMORY", "the card has no room for a context: others have its memory (D63)", "nvidia-smi", "it lists who"},
	{"CUDA_ERROR_DEVICE_UNAVAILABLE", "the card is kept for another process (D16)", "nvidia-smi -q -d COMPUTE", "sudo nvidia-smi -c 0 gives it to all"},
	{"CUDA_ERROR_ECC_UNCORRECTABLE", "the card's memory has errors (D49)", "nvidia-smi -q -d ECC,ROW_REMAPPER", "reset or replace the card"},
	{"CUDA_ERROR_LAUNCH_TIMEOUT", "a display's watchdog ended a kernel (D57)", "nvidia-smi -q -d DISPLAY", "use another card, or no desktop on this one"},
}

func deepFailed(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, d := range f.Deep {
		if d.Failed > 0 {
			evidence = append(evidence, value(d.Name, d.Failed, "%s %s: %d of %d failed: %s", d.Part, d.Name, d.Failed, d.Cases, d.First))
		}
	}
	if evidence == nil {
		return nil
	}
	for _, c := range deepCauses {
		if i := slices.IndexFunc(evidence, func(e finding.Evidence) bool { return strings.Contains(e.Text, c.name) }); i >= 0 {
			return one(c.title, evidence, c.do, c.fix, finding.High, "the same check passes after it")
		}
	}
	device := f.Deep[0].Device
	return one("the card computes or copies wrongly", evidence, "warpline check --device "+device+" --record", "it runs every operation and keeps the answers; a fresh start of the machine comes first, then another driver, then another card", finding.High, "the same check passes")
}
