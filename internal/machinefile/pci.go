package machinefile

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

var pciRow = regexp.MustCompile(`^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([^\[:]+) \[([0-9a-f]{4})\]: (.*?) \[([0-9a-f]{4}):([0-9a-f]{4})\]((?: \(rev [0-9a-f]{2}\))?)`)

// pciName is a row of lspci without -nn.
var pciName = regexp.MustCompile(`^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) ([^\[:]+): (.*?)((?: \(rev [0-9a-f]{2}\))?)$`)

func isPCI(head string) bool {
	lines := headLines(head, 40)
	n := 0
	for _, line := range lines {
		if pciRow.MatchString(line) || pciName.MatchString(line) {
			n++
		}
	}
	return n > 0 && (pciRow.MatchString(lines[0]) || pciName.MatchString(lines[0]))
}

// device is a function on the bus.
type device struct {
	Address string `json:"address"`
	Class   string `json:"class"` // number, or words where the file has no numbers
	Vendor  string `json:"vendor,omitempty"`
	ID      string `json:"id,omitempty"`
	Name    string `json:"name"`
	Driver  string `json:"driver,omitempty"`

	dead, nvidia, display, bridge, nvswitch bool
	link                                    string // LnkSta
	narrow, unassigned, redirects           bool
	line                                    int
}

// mostDevices bounds a bus.
const mostDevices = 1 << 16

func diagnosePCI(r *finding.Report, text *reader) error {
	var all []*device
	err := text.lines(func(n int, line string) {
		if d := deviceOf(line); d != nil && len(all) < mostDevices {
			d.line = n
			all = append(all, d)
		} else if len(all) > 0 && strings.HasPrefix(line, "\t") {
			all[len(all)-1].more(strings.TrimSpace(line))
		}
	})
	if err == nil {
		reportPCI(r, all)
	}
	return err
}

func deviceOf(line string) *device {
	var d *device
	if m := pciRow.FindStringSubmatch(line); m != nil {
		d = &device{Address: m[1], Class: m[3], Name: m[4], Vendor: m[5], ID: m[6], dead: strings.Contains(m[7], "rev ff"), nvidia: m[5] == "10de",
			display: strings.HasPrefix(m[3], "03"), bridge: m[3] == "0604"}
		d.nvswitch = d.nvidia && m[3] == "0680"
	} else if m := pciName.FindStringSubmatch(line); m != nil {
		d = &device{Address: m[1], Class: m[2], Name: m[3], dead: strings.Contains(m[4], "rev ff"), nvidia: strings.Contains(m[3], "NVIDIA"),
			display: m[2] == "VGA compatible controller" || m[2] == "3D controller" || m[2] == "Display controller", bridge: m[2] == "PCI bridge"}
		d.nvswitch = d.nvidia && m[2] == "Bridge"
	}
	return d
}

var downgraded = regexp.MustCompile(`^LnkSta:.*Width x\d+ \(downgraded\)`)

// more is a line of what lspci -vv and -k say of a device.
func (d *device) more(line string) {
	switch {
	case strings.HasPrefix(line, "Kernel driver in use: "):
		d.Driver = strings.TrimPrefix(line, "Kernel driver in use: ")
	case strings.HasPrefix(line, "LnkSta:"):
		d.link, d.narrow = line, downgraded.MatchString(line)
	case strings.HasPrefix(line, "Region ") && strings.Contains(line, "<unassigned>"):
		d.unassigned = true
	case strings.HasPrefix(line, "ACSCtl:"):
		d.redirects = strings.Contains(line, "ReqRedir+") || strings.Contains(line, "CmpltRedir+")
	}
}

// foreign are drivers that keep NVIDIA's from a card.
var foreign = map[string]string{"nouveau": "blacklist nouveau (echo blacklist nouveau | sudo tee /etc/modprobe.d/blacklist-nouveau.conf), rebuild the initramfs, reboot", "nova": "blacklist nova_core, rebuild the initramfs, reboot",
	"vfio-pci": "the card is passed through to a virtual machine: use it there, or unbind it: echo ADDRESS | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind"}

// bus are all devices of a file, and the cards among them.
type bus struct {
	all, cards []*device
	switches   int
	others     []string // display adapters of other makers
}

// pciRules are the rules of lspci, the worst first. What they say is of a device, or of the bus.
var pciRules = []struct {
	rule  string
	judge func(*bus) (*finding.Finding, *device)
}{
	{"D01", (*bus).noCard},
	{"D48", (*bus).dead},
	{"D28", (*bus).foreign},
	{"D31", (*bus).unassigned},
	{"D39", (*bus).redirected},
	{"D55", (*bus).narrow},
}

func reportPCI(r *finding.Report, all []*device) {
	b := &bus{all: all}
	for _, d := range all {
		switch {
		case d.nvswitch:
			b.switches++
		case d.nvidia && d.display:
			b.cards = append(b.cards, d)
		case d.display:
			b.others = append(b.others, d.Name)
		}
	}
	r.Figures["devices"], r.Figures["cards"], r.Figures["nvswitches"] = len(all), len(b.cards), b.switches
	r.Detail = all
	for _, rule := range pciRules {
		if f, d := rule.judge(b); f != nil {
			f.Rule = rule.rule
			if d != nil {
				f.Line = lineNumber(d.line)
			}
			r.Findings = append(r.Findings, *f)
		}
	}
	healthyPCI(r, b.cards, b.switches)
}

// first is the first device that is so.
func first(all []*device, is func(*device) bool) *device {
	for _, d := range all {
		if is(d) {
			return d
		}
	}
	return nil
}

func (b *bus) noCard() (*finding.Finding, *device) {
	if len(b.cards) > 0 {
		return nil, nil
	}
	has := "no display adapter at all"
	if b.others != nil {
		has = "only " + strings.Join(b.others, "; ")
	}
	return &finding.Finding{Title: "no NVIDIA card is on the bus: " + has, Confidence: finding.High, Gain: finding.Gain{Text: "a card to compute on"},
		Evidence:    []finding.Evidence{says("devices", len(b.all), "%d devices, none of them a card of vendor 10de", len(b.all))},
		Fix:         "look at slot and power, and at what the hypervisor passes through; echo 1 | sudo tee /sys/bus/pci/rescan looks again",
		DisprovedBy: "lspci -nn -d 10de: lists one"}, nil
}

func (b *bus) dead() (*finding.Finding, *device) {
	d := first(b.cards, func(d *device) bool { return d.dead })
	if d == nil {
		return nil, nil
	}
	f := ailing("D48", finding.High, "the card computes again", says("revision", "ff", "%s answers with ff only (rev ff)", d.Address))
	f.DisprovedBy = "the card is switched off on purpose (a laptop's second card)"
	return f, d
}

func (b *bus) foreign() (*finding.Finding, *device) {
	d := first(b.cards, func(d *device) bool { return foreign[d.Driver] != "" })
	if d == nil {
		return nil, nil
	}
	return &finding.Finding{Title: "another driver has the card: " + d.Driver, Fix: strings.ReplaceAll(foreign[d.Driver], "ADDRESS", d.Address), Gain: finding.Gain{Text: "the card computes here"}, Confidence: finding.High,
		Evidence: []finding.Evidence{says("driver", d.Driver, "%s (%s) has the driver %s", d.Address, d.Name, d.Driver)}, DisprovedBy: "the card is meant for a virtual machine"}, d
}

func (b *bus) unassigned() (*finding.Finding, *device) {
	d := first(b.cards, func(d *device) bool { return d.unassigned })
	if d == nil {
		return nil, nil
	}
	return &finding.Finding{Title: "a card's memory has no place on the bus", Fix: "turn on \"Above 4G decoding\" in the firmware's settings, or boot with pci=realloc", Gain: finding.Gain{Text: "the card is there"}, Confidence: finding.High,
		Evidence: []finding.Evidence{says("region", "<unassigned>", "%s has a region that is not assigned", d.Address)}, DisprovedBy: "lspci -v shows an address for each region of the card"}, d
}

func (b *bus) redirected() (*finding.Finding, *device) {
	d := first(b.all, func(d *device) bool { return d.bridge && d.redirects })
	if d == nil || len(b.cards) < 2 {
		return nil, nil
	}
	return &finding.Finding{Title: "bridges send copies between cards by way of the processor (ACS): collectives are slow, hang, or are wrong", Confidence: finding.Medium, Gain: finding.Gain{Text: "copies between cards at their speed"},
		Fix:         "sudo setpci -s " + d.Address + " ECAP_ACS+6.w=0000, for each of them, at each start; or turn ACS off in the firmware",
		Evidence:    []finding.Evidence{says("acs", d.Address, "%s has request or completion redirect on", d.Address)},
		DisprovedBy: "no card lies behind these bridges, or this is a virtual machine"}, d
}

func (b *bus) narrow() (*finding.Finding, *device) {
	d := first(b.cards, func(d *device) bool { return d.narrow })
	if d == nil {
		return nil, nil
	}
	return &finding.Finding{Title: "a card's link has fewer lanes than it could", Fix: "reseat the card, or use a slot with all lanes", Gain: finding.Gain{Text: "copies at the link's full speed"}, Confidence: finding.Medium,
		Evidence: []finding.Evidence{says("link", d.link, "%s: %s", d.Address, d.link)}, DisprovedBy: "copies of pinned memory reach the link's speed: warpline doctor --deep"}, d
}

func healthyPCI(r *finding.Report, cards []*device, switches int) {
	names := map[string]int{}
	var order []string
	for _, d := range cards {
		if d.dead || d.narrow || d.unassigned || foreign[d.Driver] != "" {
			continue
		}
		if names[d.Name]++; names[d.Name] == 1 {
			order = append(order, d.Name)
		}
	}
	for _, name := range order {
		r.Checked = append(r.Checked, fmt.Sprintf("on the bus: %d × %s", names[name], cmp.Or(name, "card")))
	}
	if switches > 0 {
		r.Checked = append(r.Checked, fmt.Sprintf("%d NVSwitches join the cards: nv-fabricmanager must run, of the driver's very version; if CUDA gives error 802 (D15), that is why", switches))
	}
}
