package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

var kernelRules = []rule{
	{id: "D28", name: "other-driver", step: P2, breaks: true, what: "no other driver has the cards", can: (*Facts).expects, saw: (*Facts).sawOwners, judge: otherDriver},
	{id: "D27", name: "secure-boot", step: P2, breaks: true, what: "Secure Boot keeps no module out", can: (*Facts).expects, saw: (*Facts).trusted, judge: secureBoot},
	{id: "D02", name: "module-not-loaded", step: P2, breaks: true, what: "the kernel has the driver's module", can: (*Facts).expects, saw: (*Facts).loaded, judge: notLoaded},
	{id: "D29", name: "wrong-branch", step: P2, breaks: true, what: "the driver refuses no card", can: (*Facts).expects, saw: (*Facts).allCards, judge: wrongBranch},
	{id: "D30", name: "card-not-started", step: P4, breaks: true, what: "the driver brought every card up", can: func(f *Facts) bool { return f.expects() && f.loaded() }, saw: (*Facts).allCards, judge: notStarted},
	{id: "D32", name: "parameters", step: P2, what: "the driver runs with its own settings", can: (*Facts).loaded, saw: (*Facts).sawParams, judge: parameters},
	{id: "D12", name: "no-uvm", step: P5, breaks: true, what: "nvidia-uvm is there", can: (*Facts).usable, judge: noUVM},
	{id: "D14", name: "uvm-broken", step: P5, breaks: true, what: "nvidia-uvm answers", can: (*Facts).usable, saw: (*Facts).sawUVM, judge: brokenUVM},
}

// othersOf are the drivers of other makers that have cards: in a container they are the host's.
func (f *Facts) othersOf() (out []PCI) {
	for _, c := range f.cards() {
		if c.Driver != "" && c.Driver != "nvidia" {
			out = append(out, c)
		}
	}
	return out
}

func otherDriver(f *Facts) []ill {
	taken := f.othersOf()
	if len(taken) == 0 || len(taken) < len(f.cards()) && f.NVML.works() {
		return nil
	}
	driver := taken[0].Driver
	evidence := []finding.Evidence{value("driver", driver, "%s has %s", driver, list(taken, func(c PCI) string { return c.Address }))}
	for _, e := range f.events(OtherDriver) {
		evidence = append(evidence, value("log", e.Count, "the driver says that another one was loaded and took the card"))
	}
	if driver == "vfio-pci" {
		return one("a card is kept for virtual machines: vfio-pci has it", evidence,
			"echo "+taken[0].Address+" | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind", "and take its ids out of the kernel's command line and /etc/modprobe.d", finding.High, "lspci -k names nvidia as the driver in use")
	}
	return one("the card belongs to "+driver+", not to NVIDIA's driver", evidence,
		"printf 'blacklist "+driver+"\\noptions "+driver+" modeset=0\\n' | sudo tee /etc/modprobe.d/blacklist-"+driver+".conf && sudo update-initramfs -u && sudo reboot",
		"install the NVIDIA driver first; on Fedora and its kin the second command is dracut --force", finding.High, "lspci -k names nvidia as the driver in use")
}

// running is the module file of the running kernel.
func (f *Facts) running() (there, known bool) {
	for _, m := range f.Kernel.Files {
		if m.Kernel == f.Platform.Kernel {
			return m.There, true
		}
	}
	return false, len(f.Kernel.Files) > 0
}

func secureBoot(f *Facts) []ill {
	there, _ := f.running()
	locked := f.Kernel.SecureBoot != nil && *f.Kernel.SecureBoot || f.Kernel.Enforced != nil && *f.Kernel.Enforced || f.Kernel.Lockdown != "" && f.Kernel.Lockdown != "none"
	rejected := f.events(KeyRejected)
	if f.loaded() || len(rejected) == 0 && !(locked && there && len(f.othersOf()) == 0) {
		return nil
	}
	sure := finding.Medium
	evidence := []finding.Evidence{value("secure_boot", locked, "the kernel takes signed modules only, nvidia.ko is on the disk, and it is not loaded")}
	if len(rejected) > 0 {
		sure = finding.High
		evidence = append(evidence, value("log", rejected[0].Count, "the kernel rejected the key of a module"))
	}
	return one("Secure Boot keeps the driver's module out: nobody that the firmware trusts has signed it", evidence,
		"sudo mokutil --import /var/lib/shim-signed/mok/MOK.der", "confirm the key at the next start, at the machine's own screen (a virtual machine without a console cannot: take the distribution's signed driver, or turn Secure Boot off)",
		sure, "sudo modprobe nvidia works")
}

func notLoaded(f *Facts) []ill {
	if f.loaded() || len(f.othersOf()) > 0 || len(secureBoot(f)) > 0 {
		return nil
	}
	evidence := []finding.Evidence{value("driver_kernel", "", "a card is at %s, and /proc/driver/nvidia/version is not there", list(f.cards(), func(c PCI) string { return c.Address }))}
	if f.nvmlCode(9) {
		evidence = append(evidence, value("nvml", 9, "NVML begins with NVML_ERROR_DRIVER_NOT_LOADED"))
	}
	const title = "the kernel has not loaded NVIDIA's driver"
	if f.contained() {
		return one(title+", and this is a container: the host must", evidence, "nvidia-smi", "typed on the host: it tells why; a container has no kernel of its own", finding.High, "nvidia-smi works on the host")
	}
	there, known := f.running()
	with := slices.IndexFunc(f.Kernel.Files, func(m ModuleFile) bool { return m.There })
	switch {
	case there:
		if slices.Contains(f.Kernel.Blacklists, "nvidia") {
			evidence = append(evidence, value("blacklist", "nvidia", "a file of /etc/modprobe.d keeps the module out"))
		}
		return one(title, append(evidence, value("module", true, "its module is on the disk for kernel %s", f.Platform.Kernel)),
			"sudo modprobe nvidia", "if it fails, its message and dmesg say why; run warpline doctor again", finding.High, "lsmod lists nvidia")
	case known && with >= 0:
		evidence = append(evidence, value("module", false, "its module was built for kernel %s and not for %s, which runs", f.Kernel.Files[with].Kernel, f.Platform.Kernel))
		if f.Kernel.Headers != nil && !*f.Kernel.Headers {
			evidence = append(evidence, value("headers", false, "the headers of the running kernel, which building it needs, are not installed"))
		}
		return one(title+": it was not built for the kernel that runs", evidence,
			"sudo apt install linux-headers-$(uname -r) && sudo dkms autoinstall && sudo modprobe nvidia", "elsewhere install the running kernel's headers by the system's own packages", finding.High, "dkms status lists nvidia for the running kernel")
	}
	return one("no NVIDIA driver is installed", append(evidence, value("module", false, "no kernel here has nvidia.ko")), install(f), "then reboot", finding.High, "find /lib/modules -name 'nvidia.ko*' lists one")
}

// install is how a distribution installs the driver.
func install(f *Facts) string {
	switch f.Platform.Name {
	case "ubuntu", "pop", "linuxmint":
		return "sudo ubuntu-drivers install"
	case "debian":
		return "sudo apt install nvidia-driver"
	case "fedora", "rocky", "almalinux", "rhel":
		return "sudo dnf install akmod-nvidia"
	case "arch", "manjaro":
		return "sudo pacman -S nvidia-open"
	case "opensuse-leap", "opensuse-tumbleweed":
		return "sudo zypper install nvidia-open-driver-G06-signed-kmp-default"
	}
	return "lspci -nn -d 10de: && uname -r"
}

func wrongBranch(f *Facts) []ill {
	words := map[string][2]string{
		Unsupported: {"this branch of the driver does not support the card", "install the branch that nvidia.com/drivers names for the card: old cards need a legacy one, new ones a newer"},
		NeedsOpen:   {"the card needs the open flavour of the driver's module", "install the package whose name has -open"},
		NeedsClosed: {"the card is too old for the open flavour of the driver's module", "install the proprietary flavour: the package without -open in its name"},
	}
	for _, kind := range []string{Unsupported, NeedsOpen, NeedsClosed} {
		if logged := f.events(kind); len(logged) > 0 {
			if f.NVML.works() && len(f.NVML.Cards) >= len(f.cards()) {
				return nil // the log is of an earlier driver
			}
			e := logged[0]
			return one(words[kind][0], []finding.Evidence{value("log", e.Count, "the driver says so of %s, %d times", e.Bus, e.Count), value("driver_kernel", f.Kernel.Driver, "version %s", f.Kernel.Driver)},
				install(f), words[kind][1], finding.High, "nvidia-smi lists the card")
		}
	}
	return nil
}

func notStarted(f *Facts) []ill {
	failed := append(f.events(InitFailed), f.events(NoFirmware)...)
	missing := f.NVML.works() && len(f.NVML.Cards) < len(f.cards()) && len(f.othersOf()) == 0 && !f.contained()
	if !f.loaded() || !missing && (len(failed) == 0 || f.NVML.works()) {
		return nil
	}
	evidence := []finding.Evidence{value("cards", len(f.NVML.Cards), "the bus has %d cards, the driver has %d of them", len(f.cards()), len(f.NVML.Cards))}
	for _, e := range failed {
		evidence = append(evidence, value("log", e.Count, "the driver could not start %s (%s), %d times", e.Bus, e.Kind, e.Count))
	}
	if f.Kernel.GSP != nil && !*f.Kernel.GSP {
		evidence = append(evidence, value("gsp_firmware", false, "/lib/firmware/nvidia/%s has no gsp_*.bin", f.Kernel.Driver))
		return one("a card did not start: firmware of the driver's version is missing", evidence, install(f), "again, so that firmware and module are of one version", finding.High, "ls /lib/firmware/nvidia/"+f.Kernel.Driver+" lists gsp_*.bin")
	}
	return one("the driver could not start a card", evidence, "sudo shutdown -h now", "a start from cold often mends it; then the slot, the power cables and the firmware's setting \"Above 4G decoding\"", finding.Medium, "nvidia-smi lists every card of lspci -d 10de:")
}

// usual are values of the driver's parameters that change nothing to worry about.
var usual = map[string]string{"EnableGpuFirmware": "18", "RegistryDwords": `""`, "NVreg_DynamicPowerManagement": "3"}

func parameters(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, name := range []string{"EnableGpuFirmware", "RegistryDwords", "RegistryDwordsPerDevice"} {
		v, ok := f.Kernel.Params[name]
		if ok && v != "" && v != `""` && v != usual[name] {
			evidence = append(evidence, value(name, v, "%s: %s", name, v))
		}
	}
	if f.Kernel.Warned > 0 {
		evidence = append(evidence, value("warnings", f.Kernel.Warned, "/proc/driver/nvidia/warnings has %d: %s", f.Kernel.Warned, strings.Join(f.Kernel.Warnings, "; ")))
	}
	if evidence == nil {
		return nil
	}
	return gains(one("somebody set the driver's parameters", evidence, "grep -r nvidia /etc/modprobe.d /proc/driver/nvidia/params",
		"take back what nobody remembers, if something else is wrong", finding.Low, "the machine's keeper wants them so"), "the driver as its makers test it")
}

func noUVM(f *Facts) []ill {
	n := f.node("/dev/nvidia-uvm")
	_, module := f.module("nvidia_uvm")
	if n.There && (module || f.UVM.Asked && f.UVM.Errno == "") {
		return nil
	}
	evidence := []finding.Evidence{value("nvidia_uvm", module, "the module nvidia_uvm is %s, /dev/nvidia-uvm is %s", unless(module, "loaded"), unless(n.There, "there"))}
	if f.cudaCode(999, 3, 100) {
		evidence = append(evidence, value("cuInit", f.CUDA.Code, "cuInit gives %d", f.CUDA.Code))
	}
	if f.contained() && module {
		return one("the container was not given /dev/nvidia-uvm", evidence, "docker run --rm --gpus all --device /dev/nvidia-uvm --device /dev/nvidia-uvm-tools ubuntu nvidia-smi", "on the host it lists the cards; then start this container with the same options", finding.High, "ls /dev/nvidia-uvm in the container")
	}
	return one("unified memory's module is missing, without which CUDA does not start", evidence, "sudo nvidia-modprobe -u -c 0", "where there is no nvidia-modprobe: sudo modprobe nvidia_uvm", finding.High, "ls /dev/nvidia-uvm lists it, and CUDA still does not start")
}

func unless(is bool, what string) string {
	if is {
		return what
	}
	return "not " + what
}

func brokenUVM(f *Facts) []ill {
	opened := f.node("/dev/nvidia-uvm").Open
	failed := f.UVM.Asked && (f.UVM.Errno != "" || f.UVM.Status != 0)
	slept := f.Platform.Suspends > 0 && f.cudaCode(3, 999)
	if len(noUVM(f)) > 0 || !failed && !slept && (opened == "ok" || opened == "" || opened == "EACCES" || opened == "EPERM") {
		return nil
	}
	evidence := []finding.Evidence{value("uvm", f.UVM.Status, "UVM_INITIALIZE gives status %#x, %s", f.UVM.Status, orNone(f.UVM.Errno))}
	if f.Platform.Suspends > 0 {
		evidence = append(evidence, value("suspends", f.Platform.Suspends, "the machine slept %d times since it began", f.Platform.Suspends))
	}
	if f.cudaCode(3, 999) {
		evidence = append(evidence, value("cuInit", f.CUDA.Code, "cuInit gives %d", f.CUDA.Code))
	}
	m, _ := f.module("nvidia_uvm")
	evidence = append(evidence, value("refs", m.Refs, "%d users of the module: %s", m.Refs, orNone(list(f.Holders, func(h Holder) string { return fmt.Sprint(h.PID) }))))
	return one("unified memory does not work, as after a sleep of the machine", evidence, "sudo rmmod nvidia_uvm && sudo modprobe nvidia_uvm",
		"end what uses the card first; so that it does not come again: sudo systemctl enable nvidia-suspend nvidia-resume, and NVreg_PreserveVideoMemoryAllocations=1", finding.High, "it fails after a fresh start of the machine too")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
