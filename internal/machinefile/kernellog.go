package machinefile

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/internal/xid"
)

// prefixes are what stands before a message of the kernel, with the time.
var prefixes = []*regexp.Regexp{
	regexp.MustCompile(`^(?:kern|daemon|user)\s*:\w+\s*: (\S+) `),                                        // dmesg -x --time-format iso
	regexp.MustCompile(`^\d+,\d+,(\d+),[^;]{1,40};`),                                                     // /dev/kmsg: microseconds since the start
	regexp.MustCompile(`^(?:<\d+>)?\[((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \w{3} [ \d]\d [\d:]{8} \d{4})\] `), // dmesg -T
	regexp.MustCompile(`^(?:<\d+>)?\[\s*(\d+\.\d{6})\] `),                                                // dmesg: seconds since the start
	regexp.MustCompile(`^(\w{3} [ \d]\d [\d:]{8}) \S+ kernel: (?:\[\s*\d+\.\d+\] )?`),                    // syslog, journalctl -k
	regexp.MustCompile(`^(\d{4}-\d\d-\d\dT\S+) (?:\S+ )?(?:kernel: )(?:\[\s*\d+\.\d+\] )?`),              // syslog with ISO times
	regexp.MustCompile(`^()kernel: `),                                                                    // journalctl, cut at its time and host
	regexp.MustCompile(`^(\d{4}-\d\d-\d\dT[\d:,.]+[+-]\d\d:?\d\d) `),                                     // dmesg --time-format iso
}

// message is a line of the kernel without what stands before it. ok is whether something did.
func message(line string) (text, at string, ok bool) {
	for _, re := range prefixes {
		if m := re.FindStringSubmatchIndex(line); m != nil {
			return line[m[1]:], line[m[2]:m[3]], true
		}
	}
	return line, "", false
}

// sure are messages that only the kernel writes.
var sure = regexp.MustCompile(`NVRM: |oom-kill:constraint=|nvidia-nvswitch\d+: SXid|\bnouveau \d{4}:`)

func isKernelLog(head string) bool {
	lines := headLines(head, 100)
	kernel := 0
	for _, line := range lines {
		if text, _, ok := message(strings.TrimLeft(line, " \t")); ok || sure.MatchString(text) && strings.HasPrefix(text, sure.FindString(text)) {
			kernel++
		}
	}
	return kernel > 0 && 2*kernel > len(lines)
}

// Event is what a kernel log has of one kind, of one card.
type Event struct {
	Name        string `json:"name"` // "xid 79"
	Bus         string `json:"bus,omitempty"`
	Count       int    `json:"count"`
	First       string `json:"first,omitempty"` // times as the log has them
	Last        string `json:"last,omitempty"`
	Line        int    `json:"line"` // of the first
	Process     string `json:"process,omitempty"`
	Text        string `json:"text"` // of the first
	rule, class string
	number      int
}

// mostEvents bounds how many kinds of events of how many cards are kept apart.
const mostEvents = 4096

// kernelLog is what is gathered of a log.
type kernelLog struct {
	lines  int
	nvidia bool // NVIDIA's driver wrote to it
	others int  // lines of the kernel that are not of it
	events map[string]*Event
	killed map[string]int // processes that the host killed, by name
}

var sxidLine = regexp.MustCompile(`SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+), (?:\(?(Fatal|Non-fatal)\)?)?`)

// ofDriver are lines of NVIDIA's driver and its modules.
var ofDriver = regexp.MustCompile(`NVRM: |^nvidia\b|^nvidia-|SXid|\[drm\] \[nvidia-drm\]`)

func diagnoseKernelLog(r *finding.Report, text *reader) error {
	k := &kernelLog{events: map[string]*Event{}, killed: map[string]int{}}
	if err := text.lines(k.line); err != nil {
		return err
	}
	k.report(r)
	return nil
}

func (k *kernelLog) line(n int, line string) {
	k.lines++
	text, at, stamped := message(line)
	e := Event{Line: n, First: at, Last: at, Text: text[:min(len(text), 300)], Count: 1}
	switch ours := ofDriver.MatchString(text); {
	case ours:
		k.nvidia = true
	case stamped:
		k.others++
	}
	if e.xid(text) || e.sxid(text) {
		k.add(e)
	} else if m, bus, process := xid.MessageOf(text); m != nil {
		e.Name, e.rule, e.Bus = m.Kind, m.Rule, bus
		if m.Kind == xid.OutOfMemory && len(k.killed) <= mostEvents {
			k.killed[process]++
		}
		k.add(e)
	}
}

func (e *Event) xid(text string) bool {
	x, ok := xid.ErrorOf(text)
	if !ok {
		return false
	}
	e.number, e.Bus, e.rule, e.class = x.Number, x.Bus, x.Rule, string(x.Class)
	e.Name = fmt.Sprintf("xid %d", x.Number)
	e.Process = processOf(x.PID, x.Process)
	return true
}

// sxid are errors of the switches between cards. Those that are not fatal were mended.
func (e *Event) sxid(text string) bool {
	m := sxidLine.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	e.Name, e.Bus, e.rule, e.class = "sxid "+m[2], m[1], "D52", string(xid.Link)
	if m[3] == "Non-fatal" {
		e.class = string(xid.Ignore)
	}
	return true
}

func processOf(pid, name string) string {
	name = strings.Trim(name, " <>")
	if name == "" || name == "unknown" {
		return ""
	}
	return strings.TrimSpace(name + " " + strings.Trim(pid, " <>"))
}

func (k *kernelLog) add(e Event) {
	key := e.Name + " " + e.Bus
	if old := k.events[key]; old != nil {
		old.Count++
		old.Last = e.Last
		old.Process = cmp.Or(old.Process, e.Process)
		return
	}
	if len(k.events) < mostEvents {
		k.events[key] = &e
	}
}

// of are the events of a rule that want something done, in the order of the file.
func (k *kernelLog) of(rule string) (out []*Event) {
	for _, e := range k.events {
		if e.rule == rule && e.class != string(xid.Ignore) && e.class != string(xid.Unknown) {
			out = append(out, e)
		}
	}
	sorting.By(out, func(a, b *Event) int { return cmp.Compare(a.Line, b.Line) })
	return out
}

// kernelRules are the rules of kernel logs, the worst first. Those of package xid have its words.
var kernelRules = []struct {
	rule       string
	words      xid.Illness // where xid has none
	confidence finding.Confidence
	gain       string
}{
	{"D48", xid.Illness{}, finding.High, "the card computes again"},
	{"D49", xid.Illness{}, finding.High, "jobs that do not end with error 214"},
	{"D50", xid.Illness{}, finding.High, "jobs that do not hang"},
	{"D53", xid.Illness{}, finding.High, "the card's clocks, and that it stays"},
	{"D52", xid.Illness{}, finding.High, "collectives at the links' speed"},
	{"D51", xid.Illness{}, finding.High, "a card that its maker still takes back"},
	{"D43", xid.Illness{}, finding.High, "jobs that are not killed (exit 137)"},
	{"D30", xid.Illness{Title: "the driver could not start a card", Fix: "reinstall one version of the driver with its firmware (/lib/firmware/nvidia), then cut the machine's power once", Disproved: "nvidia-smi lists as many cards as lspci"}, finding.High, "the card is there"},
	{"D31", xid.Illness{Title: "a card's memory has no place on the bus", Fix: "turn on \"Above 4G decoding\" in the firmware's settings, or boot with pci=realloc", Disproved: "lspci -v shows an address for each region of the card"}, finding.High, "the card is there"},
	{"D04", xid.Illness{Title: "the driver's library and its kernel module are of different versions", Fix: "reboot, or end what uses the cards, then: sudo rmmod nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia", Disproved: "nvidia-smi runs"}, finding.High, "programs start"},
	{"D01", xid.Illness{Title: "the driver found no card", Fix: "lspci -nn -d 10de: shows whether the machine has one; look at slot, power, and what the hypervisor passes through", Disproved: "nvidia-smi -L lists a card"}, finding.High, "a card to compute on"},
	{"D28", xid.Illness{Title: "another driver has the card (nouveau or vfio-pci)", Fix: "blacklist nouveau (echo blacklist nouveau | sudo tee /etc/modprobe.d/blacklist-nouveau.conf), rebuild the initramfs, reboot", Disproved: "lspci -k names nvidia as the driver in use"}, finding.High, "the card computes"},
	{"D29", xid.Illness{Title: "this branch or flavour of the driver does not know the card", Fix: "install the branch that supports the card; cards before Turing need the closed modules, cards from Blackwell on the open ones", Disproved: "nvidia-smi lists the card"}, finding.High, "the card computes"},
	{"D27", xid.Illness{Title: "Secure Boot keeps the driver's module out", Fix: "enrol the key that signed it (sudo mokutil --import KEY, then confirm at the next start), or use the distribution's signed packages", Disproved: "modprobe nvidia succeeds"}, finding.High, "the driver loads"},
	{"D22", xid.Illness{}, finding.Medium, "the virtual card's full speed"},
	{"D55", xid.Illness{Title: "the bus to a card is slow or has errors", Fix: "reseat the card, look at riser and slot, and compare current and maximum width: nvidia-smi -q -d PCIE", Disproved: "copies of pinned memory reach the link's speed: warpline doctor --deep"}, finding.Medium, "copies at the link's speed"},
	{"D47", xid.Illness{Title: "memory of a card that a network adapter used directly was freed under it", Fix: "mostly a process that was killed while it communicated: nothing to do once; again and again, update the driver (nvidia-peermem comes with it) or use DMA-BUF (a kernel from 5.12 on and the open modules)", Disproved: "no process was killed at that time"}, finding.Low, "transfers that do not fail"},
	{"R04", xid.Illness{}, finding.High, "the program runs"},
}

// mostCorrected are errors that the bus may mend before they are worth a word.
const mostCorrected = 100

func (k *kernelLog) report(r *finding.Report) {
	all := slices.SortedFunc(maps.Values(k.events), func(a, b *Event) int { return cmp.Compare(a.Line, b.Line) })
	r.Figures["lines"], r.Figures["events"] = k.lines, all
	if len(k.killed) > 0 {
		r.Figures["killed"] = k.killed
	}
	r.Detail = all
	for _, rule := range kernelRules {
		events := slices.DeleteFunc(k.of(rule.rule), func(e *Event) bool { return e.Name == xid.PCIeCorrected && e.Count < mostCorrected })
		if len(events) == 0 {
			continue
		}
		words := rule.words
		if words.Title == "" {
			words = xid.Ills[rule.rule]
		}
		f := finding.Finding{Rule: rule.rule, Title: words.Title, Fix: words.Fix, DisprovedBy: words.Disproved, Confidence: rule.confidence, Gain: finding.Gain{Text: rule.gain}, Line: lineNumber(events[0].Line)}
		if rule.rule == "D43" {
			k.starved(&f, events)
		} else {
			f.Title += ": " + headline(events)
		}
		for _, e := range events[:min(5, len(events))] {
			f.Evidence = append(f.Evidence, says(e.Name, e.Count, "%s", e.String()))
		}
		r.Findings = append(r.Findings, f)
	}
	k.unexplained(r, all)
	k.healthy(r, all)
}

// unexplained tells of errors that package xid does not explain.
func (k *kernelLog) unexplained(r *finding.Report, all []*Event) {
	events := slices.DeleteFunc(slices.Clone(all), func(e *Event) bool { return e.class != string(xid.Unknown) })
	if len(events) == 0 {
		return
	}
	w := xid.Unexplained
	f := finding.Finding{Rule: "D50", Name: "unexplained", Title: w.Title + ": " + headline(events), Fix: w.Fix, DisprovedBy: w.Disproved, Confidence: finding.Low,
		Gain: finding.Gain{Text: "a cause, if jobs failed then"}, Line: lineNumber(events[0].Line)}
	for _, e := range events[:min(5, len(events))] {
		f.Evidence = append(f.Evidence, says(e.Name, e.Count, "%s", e.String()))
	}
	r.Findings = append(r.Findings, f)
}

// headline names the first event.
func headline(events []*Event) string {
	e := events[0]
	name := e.Name
	if e.number > 0 {
		name = xid.Of(e.number).String()
	}
	if e.Bus != "" {
		name += " of " + e.Bus
	}
	if len(events) > 1 {
		name += fmt.Sprintf(" and %d more", len(events)-1)
	}
	return name
}

// String is the event as evidence.
func (e *Event) String() string {
	s := fmt.Sprintf("%s × %d, from line %d on: %s", e.Name, e.Count, e.Line, e.Text)
	if e.First != e.Last {
		s += fmt.Sprintf(" (%s to %s)", e.First, e.Last)
	}
	return s
}

// starved words the finding of processes that the kernel killed for memory of the host: whose limit it was.
func (k *kernelLog) starved(f *finding.Finding, events []*Event) {
	cgroup, global := false, false
	for _, e := range events {
		cgroup = cgroup || strings.Contains(e.Text, "CONSTRAINT_MEMCG") || strings.HasPrefix(e.Text, "Memory cgroup")
		global = global || strings.Contains(e.Text, "CONSTRAINT_NONE") || strings.HasPrefix(e.Text, "Out of memory: Kill")
	}
	who := "processes"
	if len(k.killed) > 0 {
		names := slices.SortedFunc(maps.Keys(k.killed), func(a, b string) int { return cmp.Or(k.killed[b]-k.killed[a], strings.Compare(a, b)) })
		who = strings.Join(names[:min(3, len(names))], ", ")
	}
	f.Title = fmt.Sprintf("the host's memory ran out, and the kernel killed %s: it was the machine's memory, not a card's", who)
	f.Fix = "load less at once (fewer DataLoader workers, no pinned copies of whole data sets, sharded checkpoints), or add memory or swap"
	switch {
	case cgroup && global:
		f.Fix += "; where a container's limit was hit, raise it (docker run --memory, resources.limits.memory)"
	case cgroup:
		f.Title = fmt.Sprintf("a container's limit of host memory was hit, and the kernel killed %s: it was the machine's memory, not a card's", who)
		f.Fix = "raise the container's limit (docker run --memory, resources.limits.memory), or load less at once: fewer DataLoader workers, sharded checkpoints"
	}
	f.DisprovedBy = "the jobs of that time ended with other exit codes than 137"
}

// healthy says what else was looked at.
func (k *kernelLog) healthy(r *finding.Report, all []*Event) {
	for _, e := range all {
		switch {
		case e.class == string(xid.Ignore) && e.number > 0:
			r.Checked = append(r.Checked, fmt.Sprintf("%v of %s × %d: no action by itself", xid.Of(e.number), e.Bus, e.Count))
		case e.class == string(xid.Ignore):
			r.Checked = append(r.Checked, fmt.Sprintf("%s of %s × %d: not fatal", e.Name, e.Bus, e.Count))
		}
	}
	switch {
	case !k.nvidia:
		r.Notes = append(r.Notes, "NVIDIA's driver writes nothing in this log: errors of cards could not be judged")
	case !slices.ContainsFunc(all, func(e *Event) bool { return e.number > 0 }):
		r.Checked = append(r.Checked, fmt.Sprintf("no Xid in %d lines", k.lines))
	}
	switch {
	case k.others == 0:
		r.Notes = append(r.Notes, "the log has lines of NVIDIA's driver alone: whether the host's memory ran out could not be judged")
	case !slices.ContainsFunc(all, func(e *Event) bool { return e.rule == "D43" }):
		r.Checked = append(r.Checked, "no process was killed for memory of the host")
	}
}
