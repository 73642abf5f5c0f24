package doctor

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/finding"
)

var busRules = []rule{
	{id: "D01", name: "no-card", step: P1, breaks: true, what: "an NVIDIA card is there", can: func(f *Facts) bool { return f.sawBus() || f.blind() }, saw: (*Facts).hasCard, judge: noCard},
	{id: "D48", name: "fallen-off-the-bus", step: P1, breaks: true, what: "the cards answer on the bus", can: (*Facts).expects, saw: (*Facts).sawRegisters, judge: fallenOff},
	{id: "D48", name: "bus-errors", step: P10, what: "the bus counts no errors that matter", can: (*Facts).expects, saw: (*Facts).sawBusErrors, judge: busErrors},
	{id: "D31", name: "no-region", step: P1, breaks: true, what: "the cards' memory has addresses", can: (*Facts).expects, saw: (*Facts).sawRegions, judge: noRegion},
}

// Selector is where PyTorch's makers say which build fits which machine, and when that was looked at.
const Selector = "https://pytorch.org/get-started/locally/ (November 2026)"

// sawBus reports whether there was a list of adapters to look at.
func (f *Facts) sawBus() bool { return f.PCI != nil || f.OS != "linux" && len(f.Adapters) > 0 }

// blind reports whether a Linux was looked at that lists no bus, as sandboxes do, and has no node of a card either.
func (f *Facts) blind() bool {
	return f.OS == "linux" && f.PCI == nil && f.Nodes != nil && len(f.cardNodes()) == 0 && !f.loaded() && len(f.NVML.Cards) == 0
}

func (f *Facts) hasCard() bool {
	return len(f.cards()) > 0 || f.Platform.Tegra || f.Platform.DXG || slices.ContainsFunc(f.Adapters, func(a Adapter) bool { return a.Vendor == nvidia })
}

func noCard(f *Facts) []ill {
	if f.hasCard() {
		return nil
	}
	evidence := []finding.Evidence{value("cards_on_bus", 0, "no function of vendor 0x10de among %d display and compute controllers", len(f.PCI)+len(f.Adapters))}
	sure := finding.High
	if !f.sawBus() {
		evidence, sure = []finding.Evidence{value("cards_on_bus", 0, "there is no /sys/bus/pci, and no /dev/nvidia0")}, finding.Medium
	}
	there := ", nor any other adapter"
	for i, a := range f.others() {
		name, does := maker(a)
		if i == 0 {
			there = ", only " + name
		}
		evidence = append(evidence, value("adapter", name, "%s %s", name, does))
	}
	if f.appleChip() {
		there += ", PyTorch's device mps"
	}
	do, more, lists := f.without()
	return one("no NVIDIA card is here"+there+"; the devices cpu and sim:0 work", evidence, do, more+"; which build of PyTorch fits what is here: "+Selector, sure, lists)
}

// without says what to do on a machine without a card, what else to know, and what lists a card if there is one.
func (f *Facts) without() (do, more, lists string) {
	do, lists = "warpline train --device cpu", "lspci -nn | grep -i nvidia lists one"
	more = "a card that should be there is off, not seated, or disabled by the firmware"
	switch {
	case f.appleChip() && f.Python != nil && len(rosetta(f)) > 0:
		r := rosetta(f)[0]
		do, more, lists = r.Fix, r.Title, "system_profiler SPDisplaysDataType lists one"
	case f.appleChip():
		do, lists = `python3 -c "import torch; print(torch.backends.mps.is_available())"`, "system_profiler SPDisplaysDataType lists one"
		more = "in PyTorch the Mac's GPU is the device mps, where this prints True; macOS drives no card of NVIDIA's"
	case f.OS == "darwin":
		more, lists = "macOS drives no card of NVIDIA's since 10.14", "system_profiler SPDisplaysDataType lists one"
	case f.OS == "windows":
		lists = "the Device Manager lists one under Display adapters"
	case f.Platform.Hypervisor:
		more = "the host of a virtual machine must pass a card through"
	case f.contained():
		more = "the host of this container has none either: /sys is the host's"
	}
	return do, more, lists
}

// others are the adapters that are not NVIDIA's.
func (f *Facts) others() (out []Adapter) {
	for _, p := range f.PCI {
		if p.Vendor != nvidia && p.Class>>16 == 0x03 || p.Class>>16 == 0x12 {
			out = append(out, Adapter{Vendor: p.Vendor, Device: p.Device, Driver: p.Driver})
		}
	}
	for _, a := range f.Adapters {
		i := slices.IndexFunc(out, func(b Adapter) bool { return a.Vendor != 0 && a.Vendor == b.Vendor && a.Device == b.Device })
		if i < 0 {
			out = append(out, a)
		} else if a.Name != "" {
			out[i].Name = a.Name
		}
	}
	return out
}

// makers of adapters: what they are, and what of training they can do.
var makers = map[int][2]string{
	0x1002: {"a GPU of AMD", "computes by PyTorch's builds for ROCm, if it is a supported one"},
	0x8086: {"a GPU of Intel", "computes by PyTorch's builds for xpu, if it is an Arc or newer, and by nothing else"},
	0x106b: {"a GPU of Apple", "computes as PyTorch's device mps"},
	0x1414: {"Hyper-V's display", "draws and does not compute"},
	0x1af4: {"a virtual display (virtio)", "draws and does not compute"},
	0x1234: {"a virtual display (QEMU)", "draws and does not compute"},
	0x15ad: {"a virtual display (VMware)", "draws and does not compute"},
	0x80ee: {"a virtual display (VirtualBox)", "draws and does not compute"},
	0x1013: {"a virtual display (Cirrus)", "draws and does not compute"},
	0x1b36: {"a virtual display (QXL)", "draws and does not compute"},
	0x1a03: {"a server's console (ASPEED)", "draws and does not compute"},
	0x102b: {"a server's console (Matrox)", "draws and does not compute"},
	0x1da3: {"an accelerator of Habana (Gaudi)", "computes by its own build of PyTorch"},
	0x1ae0: {"an accelerator of Google", "computes by PyTorch/XLA"},
	0x1d0f: {"an accelerator of Amazon", "computes by its own build of PyTorch"},
}

// unusable is what is said of adapters that nobody knows.
const unusable = "is nothing that PyTorch or this program computes on"

// maker says what an adapter is and what it can do.
func maker(a Adapter) (name, does string) {
	known, ok := makers[a.Vendor]
	switch {
	case a.Source == "model": // of an Intel Mac, whose adapter is not told
		return a.Name, "compute as PyTorch's device mps up to version 2.2, where they are of AMD"
	case !ok && a.Name != "":
		return a.Name, unusable
	case !ok && a.Vendor == 0:
		return "what " + a.Driver + " drives", unusable
	case !ok:
		return fmt.Sprintf("a device of vendor %#06x", a.Vendor), unusable
	case a.Name != "":
		return a.Name, known[1]
	case a.Device != 0:
		return fmt.Sprintf("%s (%04x:%04x)", known[0], a.Vendor, a.Device), known[1]
	}
	return known[0], known[1]
}

// gone is what a device's registers read as when it does not answer.
const gone = 0xffffffff

func fallenOff(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, c := range f.cards() {
		if c.Config != nil && *c.Config == gone || c.Revision == 0xff {
			evidence = append(evidence, value("config", "0xffffffff", "%s does not answer: its registers read as all ones (lspci: rev ff)", c.Address))
		}
	}
	evidence = append(evidence, f.xids("D48")...)
	for _, e := range f.events(FallenOff) {
		evidence = append(evidence, value("log", e.Count, "the kernel says that %s has fallen off the bus, %d times", e.Bus, e.Count))
	}
	for _, c := range f.NVML.Cards {
		if c.Code == 15 {
			evidence = append(evidence, value("nvml", c.Code, "NVML says NVML_ERROR_GPU_IS_LOST of card %d", c.Index))
		}
	}
	if f.nvmlCode(15) {
		evidence = append(evidence, value("nvml", 15, "NVML begins with NVML_ERROR_GPU_IS_LOST"))
	}
	if evidence == nil {
		return nil
	}
	return one("a card has fallen off the bus", evidence, "sudo shutdown -h now",
		"power the machine off and on, a reboot may not be enough; then look at the card's power cables, its seat and its heat; nvidia-smi -lgc with a lower clock until it is mended",
		finding.High, "the card answers again without a reboot")
}

// mostErrors are more corrected errors than a link has that is well.
const mostErrors = 1000

func busErrors(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, c := range f.cards() {
		bad := c.Errors["nonfatal"] + c.Errors["fatal"]
		if bad > 0 || c.Errors["correctable"] > mostErrors {
			evidence = append(evidence, value("aer", bad, "%s counts %d corrected, %d other and %d fatal errors of PCI Express", c.Address, c.Errors["correctable"], c.Errors["nonfatal"], c.Errors["fatal"]))
		}
	}
	if evidence == nil {
		return nil
	}
	return gains(one("the link of a card to the machine has errors", evidence, "sudo lspci -vv -d 10de: | grep -E 'LnkSta|UESta'",
		"reseat the card and look at the riser; a card that then falls off the bus was announced so", finding.Medium, "the counters stay where they are while the card copies"),
		"copies at their speed, and no lost card")
}

func noRegion(f *Facts) []ill {
	var evidence []finding.Evidence
	for _, c := range f.cards() {
		if len(c.BARs) >= 2 && (c.BARs[0] == 0 || c.BARs[1] == 0) {
			evidence = append(evidence, value("bar", c.BARs[1], "%s: BAR0 has %d bytes, BAR1 %d", c.Address, c.BARs[0], c.BARs[1]))
		}
	}
	for _, e := range f.events(InvalidRegion) {
		evidence = append(evidence, value("log", e.Count, "the driver says that a region of %s is invalid", e.Bus))
	}
	if evidence == nil || f.loaded() && f.NVML.works() && len(f.NVML.Cards) >= len(f.cards()) {
		return nil
	}
	return one("the firmware gave a card no addresses for its memory", evidence, "sudo sed -i 's/GRUB_CMDLINE_LINUX=\"/&pci=realloc /' /etc/default/grub && sudo update-grub && sudo reboot",
		"better, turn on \"Above 4G decoding\" in the firmware's setup", finding.High, "lspci -v shows sizes of both regions")
}
