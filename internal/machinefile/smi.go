package machinefile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/nvml"
)

// Card is what nvidia-smi -q says of a card. Figures that it does not have are nil.
type Card struct {
	Bus          string   `json:"bus"`
	Name         string   `json:"name"`
	Architecture string   `json:"architecture,omitempty"`
	Utilization  *float64 `json:"utilization_percent,omitempty"`
	MemoryTotal  *float64 `json:"memory_total_mib,omitempty"`
	MemoryUsed   *float64 `json:"memory_used_mib,omitempty"`
	Power        *float64 `json:"power_w,omitempty"`
	PowerLimit   *float64 `json:"power_limit_w,omitempty"`
	PowerDefault *float64 `json:"power_default_w,omitempty"`
	Temperature  *float64 `json:"temperature_c,omitempty"`
	SlowAt       *float64 `json:"slowdown_c,omitempty"`
	Clock        *float64 `json:"sm_clock_mhz,omitempty"`
	ClockMax     *float64 `json:"sm_clock_max_mhz,omitempty"`
	Gen          *float64 `json:"pcie_gen,omitempty"`
	GenMax       *float64 `json:"pcie_gen_max,omitempty"`
	Width        *float64 `json:"pcie_width,omitempty"`
	WidthMax     *float64 `json:"pcie_width_max,omitempty"`
	State        string   `json:"performance_state,omitempty"`
	Reasons      []string `json:"clock_reasons,omitempty"`
	MIG          bool     `json:"mig,omitempty"`
	Slices       []Slice  `json:"slices,omitempty"`

	reasons   uint64
	node      *node
	processes float64 // MiB of those that are listed
	listed    int
}

// Slice is a part of a card by MIG.
type Slice struct {
	SMs       int     `json:"sms"`
	MemoryMiB float64 `json:"memory_mib"`
}

// smiLog is a file.
type smiLog struct {
	driver, cuda string
	attached     string // how many cards the driver has
	windows      bool
	cards        []*Card   // the last that is said of each
	before       [][]*Card // of each card, what was said before, where the file has several answers
}

var (
	xmlHead  = regexp.MustCompile(`^\s*(?:<\?xml[^>]*>\s*)?(?:<!DOCTYPE nvidia_smi_log\b|<nvidia_smi_log>)`)
	textHead = regexp.MustCompile(`(?m)^=+NVSMI LOG=+\s*$`)
)

func isSMI(head string) bool {
	return xmlHead.MatchString(head) || textHead.MatchString(head) || failureOf(head) != nil && len(headLines(head+"\n", 20)) < 10
}

func diagnoseSMI(r *finding.Report, text *reader) error {
	head := make([]byte, 1<<12)
	n, _ := text.Read(head)
	start := string(head[:n])
	whole := text.rest(start)
	var tops []*node
	var err error
	switch {
	case xmlHead.MatchString(start):
		tops, err = readXML(whole)
	case textHead.MatchString(start):
		tops, err = readText(whole)
	default:
		return failed(r, start)
	}
	l := newLog(tops)
	switch {
	case len(l.cards) > 0:
	case err != nil:
		return err
	case l.attached == "0":
		return failed(r, noDevices)
	default:
		return errors.New("it has no card in it: nothing of one can be judged")
	}
	l.report(r)
	if err != nil {
		r.Notes, r.Checked = append(r.Notes, err.Error()), []string{} // what is missing is not healthy
	}
	return nil
}

// rest is the text with what was read of it already before it.
func (t *reader) rest(start string) *reader {
	t.out = append([]byte(start), t.out...)
	return t
}

func newLog(tops []*node) *smiLog {
	l := &smiLog{}
	place := map[string]int{}
	for _, top := range tops {
		if v, ok := top.text("driver_version", "kmd_version"); ok {
			l.driver = v
		}
		if v, ok := top.text("cuda_version", "cuda_umd_version"); ok {
			l.cuda = v
		}
		if v, ok := top.text("attached_gpus"); ok {
			l.attached = v
		}
		for _, n := range top.all("gpu") {
			c := cardOf(n)
			if model, ok := n.text("driver_model/current_dm", "driver_model/current"); ok && model != "" {
				l.windows = true
			}
			i, seen := place[c.Bus]
			if !seen {
				place[c.Bus] = len(l.cards)
				l.cards, l.before = append(l.cards, c), append(l.before, nil)
				continue
			}
			l.before[i] = append(l.before[i], l.cards[i])
			l.cards[i] = c
		}
	}
	return l
}

// reasonBits are NVML's bits of reasons for low clocks, by their names in XML and in text, with what stands before left out.
var reasonBits = map[string]uint64{"gpu_idle": 0x1, "idle": 0x1, "applications_clocks_setting": 0x2, "sw_power_cap": 0x4, "hw_slowdown": 0x8,
	"sync_boost": 0x10, "sw_thermal_slowdown": 0x20, "hw_thermal_slowdown": 0x40, "hw_power_brake_slowdown": 0x80, "display_clocks_setting": 0x100, "display_clock_setting": 0x100}

func cardOf(n *node) *Card {
	figure := func(paths ...string) *float64 {
		if v, ok := n.number(paths...); ok {
			return &v
		}
		return nil
	}
	c := &Card{node: n, Bus: n.id,
		Utilization: figure("utilization/gpu_util", "utilization/gpu"),
		MemoryTotal: figure("fb_memory_usage/total"), MemoryUsed: figure("fb_memory_usage/used"),
		Power: figure("gpu_power_readings/power_draw", "gpu_power_readings/average_power_draw", "gpu_power_readings/instant_power_draw",
			"gpu_power_readings/instantaneous_power_draw", "power_readings/power_draw"),
		PowerLimit:   figure("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit", "power_readings/power_limit"),
		PowerDefault: figure("gpu_power_readings/default_power_limit", "power_readings/default_power_limit"),
		Temperature:  figure("temperature/gpu_temp", "temperature/gpu_current_temp"), SlowAt: figure("temperature/gpu_temp_slow_threshold", "temperature/gpu_slowdown_temp"),
		Clock: figure("clocks/sm_clock", "clocks/sm"), ClockMax: figure("max_clocks/sm_clock", "max_clocks/sm"),
		Gen: figure("pci/pci_gpu_link_info/pcie_gen/current_link_gen", "pci/gpu_link_info/pcie_generation/current"), GenMax: figure("pci/pci_gpu_link_info/pcie_gen/max_link_gen", "pci/gpu_link_info/pcie_generation/max"),
		Width: figure("pci/pci_gpu_link_info/link_widths/current_link_width", "pci/gpu_link_info/link_width/current"), WidthMax: figure("pci/pci_gpu_link_info/link_widths/max_link_width", "pci/gpu_link_info/link_width/max"),
	}
	c.Name, _ = n.text("product_name")
	c.Architecture, _ = n.text("product_architecture")
	c.State, _ = n.text("performance_state")
	mode, _ := n.text("mig_mode/current_mig", "mig_mode/current")
	c.MIG = mode == "Enabled"
	c.slices()
	c.clocks()
	c.users()
	return c
}

// slices are in XML below mig_devices, and in text below several MIG Device.
func (c *Card) slices() {
	all := c.node.all("mig_device")
	if devices := c.node.at("mig_devices"); devices != nil {
		all = append(all, devices.all("mig_device")...)
	}
	for _, n := range all {
		sms, _ := n.number("device_attributes/shared/multiprocessor_count")
		memory, _ := n.number("fb_memory_usage/total")
		c.Slices = append(c.Slices, Slice{int(sms), memory})
	}
}

// clocks are why they are low. HW slowdown has its two causes below it in text.
func (c *Card) clocks() {
	for _, name := range []string{"clocks_event_reasons", "clocks_throttle_reasons"} {
		if n := c.node.at(name); n != nil {
			c.addReasons(n)
		}
	}
	for _, reason := range nvml.ReasonsOf(c.reasons) {
		c.Reasons = append(c.Reasons, reason.Name)
	}
}

func (c *Card) addReasons(n *node) {
	for _, p := range n.parts {
		name := strings.TrimPrefix(strings.TrimPrefix(p.name, "clocks_event_reason_"), "clocks_throttle_reason_")
		if strings.TrimSpace(p.value) == "Active" {
			c.reasons |= reasonBits[name]
		}
		c.addReasons(p)
	}
}

// users are the processes that are listed, and their memory.
func (c *Card) users() {
	n := c.node.at("processes")
	if n == nil {
		return
	}
	for _, p := range n.all("process_info") { // XML
		c.listed++
		used, _ := p.number("used_memory")
		c.processes += used
	}
	for _, p := range n.all("process_id") { // text
		c.listed++
		used, _ := p.number("used_gpu_memory")
		c.processes += used
	}
}

// of is a figure, or 0 where there is none: for comparisons that zero fails.
func of(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}

// noDevices is what nvidia-smi says of a driver without cards; a list of none says the same.
const noDevices = "No devices were found"

// failures are what nvidia-smi says in place of an answer.
var failures = []struct {
	re    *regexp.Regexp
	rule  string
	title string
	fix   string
}{
	{regexp.MustCompile(`NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver`), "D02", "nvidia-smi finds no driver: its kernel module is not loaded", "sudo modprobe nvidia, and read what it says; after an update of the kernel: sudo dkms autoinstall"},
	{regexp.MustCompile(`Failed to initialize NVML: Driver/library version mismatch`), "D04", "the driver's library and its kernel module are of different versions", "reboot, or end what uses the cards, then: sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia"},
	{regexp.MustCompile(`Failed to initialize NVML: Unknown Error`), "D26", "the container lost its right to the cards while it ran", "restart the container; against a repetition: sudo nvidia-ctk system create-dev-char-symlinks --create-all, or CDI"},
	{regexp.MustCompile(`Failed to initialize NVML: Insufficient Permissions`), "D25", "this user may not open the cards' nodes", "sudo usermod -aG video $USER, and log in again"},
	{regexp.MustCompile(`Failed to initialize NVML: GPU access blocked by the operating system`), "D26", "the system blocks access to the cards", "in WSL: wsl --update and no Linux driver inside; in containers: restart with --gpus all"},
	{regexp.MustCompile(`(?m)^` + noDevices), "D01", "the driver runs, and finds no card", "lspci -nn -d 10de: shows whether the machine has one; then the kernel's log (sudo dmesg | grep NVRM) says why it did not start"},
	{regexp.MustCompile(`Unable to determine the device handle for GPU\s?([0-9A-Fa-f:.]+): (?:GPU is lost|Unknown Error)`), "D48", "a card has fallen off the bus", "cut the machine's power and start it again; if it comes back, look at power, riser and heat"},
}

func failureOf(head string) []int {
	for i, f := range failures {
		if f.re.MatchString(head) {
			return []int{i}
		}
	}
	return nil
}

// failed reports what nvidia-smi could not do.
func failed(r *finding.Report, text string) error {
	i := failureOf(text)
	if i == nil {
		return fmt.Errorf("byte 0: %q is no output of nvidia-smi -q", text[:min(len(text), 40)])
	}
	f := failures[i[0]]
	r.Findings = append(r.Findings, finding.Finding{Rule: f.rule, Title: f.title, Fix: f.fix, Confidence: finding.High, Gain: finding.Gain{Text: "programs find the card"},
		Evidence: []finding.Evidence{says("nvidia-smi", f.re.FindString(text), "nvidia-smi says: %s", f.re.FindString(text))}, DisprovedBy: "nvidia-smi answers when it is asked again"})
	return nil
}
