package machinefile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/nvml"
	"github.com/warpline-ml/warpline/internal/xid"
)

// ill is what a rule says of one card.
type ill struct {
	finding.Finding
	card *Card
}

// smiRules are the rules of nvidia-smi -q, the worst first. Each judges a card.
var smiRules = []struct {
	rule  string
	judge func(*smiLog, *Card) *finding.Finding
}{
	{"D48", (*smiLog).lost},
	{"D49", (*smiLog).memory},
	{"D50", (*smiLog).wantsReset},
	{"D15", (*smiLog).fabric},
	{"D30", (*smiLog).firmware},
	{"D53", (*smiLog).brake},
	{"D16", (*smiLog).computeMode},
	{"D22", (*smiLog).licence},
	{"D65", (*smiLog).pending},
	{"D54", (*smiLog).hot},
	{"D54", (*smiLog).capped},
	{"D54", (*smiLog).powerLimit},
	{"R30", (*smiLog).slowing},
	{"R27", (*smiLog).lying},
	{"D55", (*smiLog).narrow},
	{"D23", (*smiLog).sliced},
	{"D63", (*smiLog).someoneElse},
	{"D59", (*smiLog).persistence},
}

func (l *smiLog) report(r *finding.Report) {
	r.Figures["driver"], r.Figures["cuda"], r.Figures["cards"] = l.driver, l.cuda, l.cards
	r.Detail = l.cards
	for _, rule := range smiRules {
		var all []ill
		for _, c := range l.cards {
			if f := rule.judge(l, c); f != nil {
				all = append(all, ill{*f, c})
			}
		}
		if len(all) > 0 {
			f := together(all, len(l.cards))
			f.Rule = rule.rule
			r.Findings = append(r.Findings, f)
		}
	}
	l.healthy(r)
}

// together is one finding for all cards of which it is said in the same words.
func together(all []ill, cards int) finding.Finding {
	f := all[0].Finding
	var where []string
	f.Evidence = nil
	for _, i := range all {
		where = append(where, i.card.Bus)
		for _, e := range i.Evidence {
			e.Text = i.card.Bus + ": " + e.Text
			f.Evidence = append(f.Evidence, e)
		}
	}
	switch {
	case cards == 1:
	case len(all) == cards:
		f.Title += fmt.Sprintf(" (all %d cards)", cards)
	default:
		f.Title += " (" + strings.Join(where, ", ") + ")"
	}
	return f
}

// loaded is whether a card works on something, from which its clocks can be judged. Of one that is cut into slices nobody says.
func (c *Card) loaded() bool { return of(c.Utilization) >= busyEnough }

const busyEnough = 50 // percent

// ailing is a finding in the words of package xid.
func ailing(rule string, confidence finding.Confidence, gain string, evidence ...finding.Evidence) *finding.Finding {
	w := xid.Ills[rule]
	return &finding.Finding{Title: w.Title, Fix: w.Fix, DisprovedBy: w.Disproved, Confidence: confidence, Gain: finding.Gain{Text: gain}, Evidence: evidence}
}

// gone are answers of a card that is not there any more.
var gone = regexp.MustCompile(`GPU is lost|^\[?Unknown Error\]?$|^ERR!$`)

func (l *smiLog) lost(c *Card) *finding.Finding {
	n, total := 0, 0
	var walk func(*node)
	walk = func(p *node) {
		if v := strings.TrimSpace(p.value); v != "" {
			total++
			if gone.MatchString(v) {
				n++
			}
		}
		for _, q := range p.parts {
			walk(q)
		}
	}
	walk(c.node)
	if n == 0 || 4*n < total {
		return nil
	}
	return ailing("D48", finding.High, "the card computes again", says("unknown", n, "%d of %d figures are \"Unknown Error\" or \"GPU is lost\"", n, total))
}

// uncorrected are the names of counts of errors that were not corrected, below volatile or aggregate, in XML and in text.
var uncorrected = []string{"sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded", "sram_uncorrectable_sec_ded", "dram_uncorrectable", "double_bit/total"}

// pendings are where a card says that spare memory is to take the place of what failed.
var pendings = []string{"remapped_rows/remapped_row_pending", "remapped_rows/pending", "retired_pages/pending_retirement", "retired_pages/pending_blacklist",
	"retired_pages/pending_page_blacklist", "ecc_errors/channel_repair_pending"}

func (c *Card) errors(span string, names ...string) (sum float64) {
	for _, name := range names {
		v, _ := c.node.number("ecc_errors/" + span + "/" + name)
		sum += v
	}
	return sum
}

func (c *Card) yes(paths ...string) bool {
	v, _ := c.node.text(paths...)
	return v == "Yes"
}

func (l *smiLog) memory(c *Card) *finding.Finding {
	var evidence []finding.Evidence
	replace, reset := false, false
	if n := c.errors("volatile", uncorrected...); n > 0 {
		evidence = append(evidence, says("ecc_volatile_uncorrectable", n, "%.0f errors that were not corrected since the driver started", n))
	}
	if n := c.errors("aggregate", uncorrected[:4]...); n > xid.MostSRAM || c.yes("ecc_errors/aggregate/sram_threshold_exceeded") {
		evidence, replace = append(evidence, says("ecc_aggregate_sram", n, "%.0f errors of SRAM that were not corrected in the card's life: above its threshold", n)), true
	}
	single, _ := c.node.number("retired_pages/multiple_single_bit_retirement/retired_count", "retired_pages/single_bit_ecc")
	double, _ := c.node.number("retired_pages/double_bit_retirement/retired_count", "retired_pages/double_bit_ecc")
	if single+double >= xid.MostRetired {
		evidence, replace = append(evidence, says("retired_pages", single+double, "%.0f pages of memory are retired (%d is the limit)", single+double, xid.MostRetired)), true
	}
	rows, _ := c.node.number("remapped_rows/remapped_row_unc", "remapped_rows/uncorrectable_error")
	if failed := c.yes("remapped_rows/remapped_row_failure", "remapped_rows/remapping_failure_occurred"); failed || rows >= xid.MostRemapped {
		evidence, replace = append(evidence, says("remapped_rows", rows, "%.0f rows were remapped after errors; a failure of that: %v", rows, failed)), true
	}
	if slices.ContainsFunc(pendings, func(path string) bool { return c.yes(path) }) {
		evidence, reset = append(evidence, says("pending", "Yes", "memory is to be replaced by spare at the next reset")), true
	}
	if evidence == nil {
		return nil
	}
	f := ailing("D49", finding.Medium, "jobs that do not end with error 214", evidence...)
	switch {
	case replace:
		f.Title, f.Confidence = "a card's memory is worn out", finding.High
		f.Fix = "the maker replaces such a card: keep this file and what nvidia-bug-report.sh makes"
	case reset:
		f.Title, f.Confidence = "a card wants a reset, so that spare memory takes the place of what failed", finding.High
		f.Fix = "sudo nvidia-smi -i " + c.Bus + " --gpu-reset after what uses the card has ended; where that is refused, reboot"
	}
	return f
}

func (l *smiLog) wantsReset(c *Card) *finding.Finding {
	action, _ := c.node.text("gpu_recovery_action")
	switch {
	case action != "":
	case c.yes("gpu_reset_status/reset_required"):
		action = "Reset"
	default:
		return nil
	}
	f := ailing("D50", finding.High, "jobs that do not hang", says("recovery_action", action, "the driver asks for: %s", action))
	f.Title = "a card wants a reset before it computes again"
	return f
}

// fabric is of cards behind switches, which compute only after nv-fabricmanager has joined them.
func (l *smiLog) fabric(c *Card) *finding.Finding {
	state, ok := c.node.text("fabric/state")
	status, _ := c.node.text("fabric/status")
	if !ok || state == "Completed" && (status == "Success" || status == "") {
		return nil
	}
	return &finding.Finding{Title: "the switches between cards are not set up: CUDA gives error 802", Confidence: finding.High,
		Evidence:    []finding.Evidence{says("fabric_state", state, "fabric state %q, status %q", state, status)},
		Fix:         "install and start nv-fabricmanager of the driver's very version (" + cmp.Or(l.driver, "see nvidia-smi") + "): sudo systemctl enable --now nvidia-fabricmanager",
		Gain:        finding.Gain{Text: "programs start"},
		DisprovedBy: "nvidia-smi -q | grep -A2 Fabric says Completed and Success"}
}

func (l *smiLog) firmware(c *Card) *finding.Finding {
	v, ok := c.node.text("gsp_firmware_version")
	if !ok || l.driver == "" || v == l.driver || !strings.Contains(v, ".") {
		return nil
	}
	return &finding.Finding{Title: "a card runs firmware of another version than its driver", Confidence: finding.High,
		Evidence: []finding.Evidence{says("gsp_firmware", v, "GSP firmware %s, driver %s", v, l.driver)}, Gain: finding.Gain{Text: "the card starts and answers"},
		Fix: "reinstall one version of the driver with its firmware, then reboot", DisprovedBy: "both are of one version after a reboot"}
}

func (l *smiLog) brake(c *Card) *finding.Finding {
	if c.reasons&0x80 == 0 {
		return nil
	}
	return ailing("D53", finding.High, "the card's clocks, and that it stays", says("clock_reasons", c.Reasons, "the power supply asks the card to slow down (HW power brake)"))
}

func (l *smiLog) computeMode(c *Card) *finding.Finding {
	mode, _ := c.node.text("compute_mode")
	mode = strings.ReplaceAll(mode, "_", " ")
	f := &finding.Finding{Evidence: []finding.Evidence{says("compute_mode", mode, "compute mode %s", mode)}, Fix: "sudo nvidia-smi -c 0 (or MPS, where several processes are to share the card)",
		Gain: finding.Gain{Text: "programs start"}, DisprovedBy: "one process a card is what is wanted"}
	switch mode {
	case "Prohibited":
		f.Title, f.Confidence = "a card's mode forbids to compute on it: CUDA gives error 46", finding.High
	case "Exclusive Process", "Exclusive Thread":
		f.Title, f.Confidence = "a card serves one process at a time: a second one gets error 46", finding.Medium
	default:
		return nil
	}
	return f
}

func (l *smiLog) licence(c *Card) *finding.Finding {
	status, ok := c.node.text("vgpu_software_licensed_product/license_status", "vgpu_software_licensed_product/licence_status", "grid_licensed_product/license_status")
	if !ok || !strings.HasPrefix(status, "Unlicensed") {
		return nil
	}
	return ailing("D22", finding.High, "the virtual card's full speed", says("license_status", status, "licence: %s", status))
}

func (l *smiLog) pending(c *Card) *finding.Finding {
	var evidence []finding.Evidence
	for _, m := range [][3]string{{"MIG", "mig_mode/current", "mig_mode/pending"}, {"ECC", "ecc_mode/current", "ecc_mode/pending"}} {
		suffix := "_" + strings.ToLower(m[0])
		now, ok := c.node.text(m[1]+suffix, m[1])
		later, ok2 := c.node.text(m[2]+suffix, m[2])
		if ok && ok2 && now != later {
			evidence = append(evidence, says(m[0], now, "%s is %s now and %s after the next reset", m[0], now, later))
		}
	}
	if evidence == nil {
		return nil
	}
	return &finding.Finding{Title: "a mode of a card was changed and waits for a reset", Evidence: evidence, Confidence: finding.High, Gain: finding.Gain{Text: "the mode that was asked for"},
		Fix: "sudo nvidia-smi -i " + c.Bus + " --gpu-reset after what uses the card has ended; where that is refused, reboot", DisprovedBy: "nvidia-smi -q has Current and Pending alike"}
}

// why are the reasons for low clocks, with what they mean.
func (c *Card) why(mask uint64) (out []finding.Evidence) {
	for _, reason := range nvml.ReasonsOf(c.reasons & mask) {
		out = append(out, says("clock_reason", reason.Name, "%s: %s", reason.Name, reason.Text))
	}
	return append(out, says("sm_clock_mhz", of(c.Clock), "%.0f of %.0f MHz, %.0f °C (slows down at %.0f), %.0f of %.0f W", of(c.Clock), of(c.ClockMax), of(c.Temperature), of(c.SlowAt), of(c.Power), of(c.PowerLimit)))
}

// Reasons for low clocks.
const (
	byPower = 0x4
	byHeat  = 0x20 | 0x40
)

func (l *smiLog) hot(c *Card) *finding.Finding {
	if c.reasons&byHeat == 0 {
		return nil
	}
	return &finding.Finding{Title: "heat holds the clocks of a card down", Evidence: c.why(byHeat), Confidence: finding.High, Gain: finding.Gain{Text: "the clocks that are missing"},
		Fix: "more air: fans, dust, distance to the neighbour; nvidia-smi -q -d TEMPERATURE,PERFORMANCE shows whether it helps", DisprovedBy: "the reasons go while the same work goes on"}
}

// capped is a limit of power that costs more than a tenth of the clock under load.
func (l *smiLog) capped(c *Card) *finding.Finding {
	if c.reasons&(byPower|0x8) == 0 || c.reasons&byHeat != 0 || !c.loaded() || of(c.Clock) == 0 || of(c.Clock) > 0.9*of(c.ClockMax) {
		return nil
	}
	return &finding.Finding{Title: "the power limit holds the clocks of a card down", Evidence: c.why(byPower | 0x8), Confidence: finding.Low, Gain: finding.Gain{Text: "the clocks that are missing"},
		Fix: "it is normal for large products; a limit below the card's own is not: nvidia-smi -q -d POWER", DisprovedBy: "the power limit is the card's own, and the work is products of matrices"}
}

func (l *smiLog) powerLimit(c *Card) *finding.Finding {
	if of(c.PowerLimit) == 0 || of(c.PowerLimit) >= 0.97*of(c.PowerDefault) {
		return nil
	}
	return &finding.Finding{Title: "somebody lowered the power limit of a card", Confidence: finding.High,
		Evidence: []finding.Evidence{says("power_limit_w", of(c.PowerLimit), "%.0f W of the card's own %.0f W", of(c.PowerLimit), of(c.PowerDefault))},
		Fix:      fmt.Sprintf("sudo nvidia-smi -i %s -pl %.0f", c.Bus, of(c.PowerDefault)), Gain: finding.Gain{Text: "up to as much speed as power, for work that needs it"}, DisprovedBy: "the supply or the cooling needs it so"}
}

// slowing is of a file with several answers: clocks that fell under load, and why.
func (l *smiLog) slowing(c *Card) *finding.Finding {
	before := l.before[slices.Index(l.cards, c)]
	i := slices.IndexFunc(before, (*Card).loaded)
	if i < 0 || !c.loaded() || c.reasons&(byPower|byHeat|0x8) == 0 || of(c.Clock) > 0.9*of(before[i].Clock) {
		return nil
	}
	return &finding.Finding{Title: fmt.Sprintf("clocks fell from %.0f to %.0f MHz while a card worked", of(before[i].Clock), of(c.Clock)), Evidence: c.why(byPower | byHeat | 0x8), Confidence: finding.Medium,
		Fix: "cool the card, or lower the load to what it keeps up; compare the times of steps before and after", Gain: finding.Gain{Text: fmt.Sprintf("up to %.0f %% of the clock", 100*(1-of(c.Clock)/of(before[i].Clock)))}, DisprovedBy: "the times of steps stay the same"}
}

// lying is R27: busy all the time, and doing little.
func (l *smiLog) lying(c *Card) *finding.Finding {
	if of(c.Utilization) < 95 || of(c.PowerLimit) == 0 || c.Power == nil || of(c.Power) > 0.5*of(c.PowerDefault) || of(c.Power) > 0.5*of(c.PowerLimit) {
		return nil
	}
	return &finding.Finding{Title: "a card is busy all the time and does little: utilisation counts any kernel, however small", Confidence: finding.Medium,
		Evidence: []finding.Evidence{says("utilization_percent", of(c.Utilization), "utilisation %.0f %% at %.0f of %.0f W", of(c.Utilization), of(c.Power), of(c.PowerLimit))},
		Fix:      "look at a trace of some steps (warpline diagnose TRACE): small kernels, or a collective that waits for a rank that hangs", Gain: finding.Gain{Text: "what the card has left"}, DisprovedBy: "dcgmi dmon -e 1002,1004 shows multiprocessors and tensor cores at work, or a kernel bound by memory"}
}

func (l *smiLog) narrow(c *Card) *finding.Finding {
	width := of(c.Width) > 0 && of(c.Width) < of(c.WidthMax)
	gen := of(c.Gen) > 0 && of(c.Gen) < of(c.GenMax) && c.loaded()
	if !width && !gen {
		return nil
	}
	f := &finding.Finding{Title: fmt.Sprintf("a card's link has %.0f of its %.0f lanes", of(c.Width), of(c.WidthMax)), Confidence: finding.Medium,
		Evidence: []finding.Evidence{says("pcie_width", of(c.Width), "x%.0f of x%.0f, generation %.0f of %.0f", of(c.Width), of(c.WidthMax), of(c.Gen), of(c.GenMax))},
		Fix:      "put the card into a slot with all lanes, or reseat it; in a virtual machine ask what the host gives", Gain: finding.Gain{Text: "copies to and from the host at the link's full speed"}, DisprovedBy: "copies of pinned memory reach the link's speed: warpline doctor --deep"}
	if !width {
		f.Title = fmt.Sprintf("a card's link runs at generation %.0f of %.0f under load", of(c.Gen), of(c.GenMax))
	}
	if mode, _ := c.node.text("gpu_virtualization_mode/virtualization_mode"); mode != "" {
		f.Confidence = finding.Low
		f.Evidence = append(f.Evidence, says("virtualization", mode, "virtual machine (%s): the host may have wired or split the slot so", mode))
	}
	return f
}

// sliced is D23: MIG.
func (l *smiLog) sliced(c *Card) *finding.Finding {
	if !c.MIG {
		return nil
	}
	f := &finding.Finding{Confidence: finding.High, Gain: finding.Gain{Text: "figures of utilisation, and programs that find their slice"}, DisprovedBy: "nvidia-smi -L lists the whole card and no slices"}
	if len(c.Slices) == 0 {
		f.Title = "MIG is on and the card has no slices: programs find no device"
		f.Evidence = []finding.Evidence{says("slices", 0, "MIG is enabled, and no instance is listed")}
		f.Fix = "make instances (sudo nvidia-smi mig -cgi 9,9 -C), or turn it off: sudo nvidia-smi -mig 0"
		return f
	}
	sms := fmt.Sprint(c.Slices[0].SMs)
	if slices.ContainsFunc(c.Slices, func(s Slice) bool { return s.SMs != c.Slices[0].SMs }) {
		var all []string
		for _, s := range c.Slices {
			all = append(all, fmt.Sprint(s.SMs))
		}
		sms = strings.Join(all, ", ")
	}
	f.Title = fmt.Sprintf("MIG is on: slices of %s SMs, and utilisation is N/A by design", sms)
	f.Evidence = []finding.Evidence{says("slices", len(c.Slices), "%d slices of %s SMs, the first with %.1f GiB", len(c.Slices), sms, c.Slices[0].MemoryMiB/1024)}
	f.Fix = "for how busy a slice is, read the profiling counters (dcgmi dmon -e 1001,1002,1004 with the slice's entity); a process uses one slice only: CUDA_VISIBLE_DEVICES=MIG-<uuid>, from nvidia-smi -L"
	return f
}

// Memory in use by nobody who is listed.
const (
	unseenShare = 0.1
	unseenLeast = 1024 // MiB
)

func (l *smiLog) someoneElse(c *Card) *finding.Finding {
	unseen := of(c.MemoryUsed) - c.processes
	if c.MIG || l.windows || unseen < unseenLeast || unseen < unseenShare*of(c.MemoryTotal) {
		return nil
	}
	return &finding.Finding{Title: fmt.Sprintf("%.1f GiB of a card are used by processes that are not listed", unseen/1024), Confidence: finding.Low,
		Evidence: []finding.Evidence{says("memory_used_mib", of(c.MemoryUsed), "%.0f MiB in use, %.0f MiB by the %d processes that are listed", of(c.MemoryUsed), c.processes, c.listed)},
		Fix:      "sudo fuser -v /dev/nvidia* on the host names them: other containers, other users, or processes that died and hold on", Gain: finding.Gain{Text: "the memory"}, DisprovedBy: "nvidia-smi was asked inside a container, which does not see the others"}
}

// desktop are cards of computers with a screen, on which the mode does not matter.
var desktop = regexp.MustCompile(`GeForce|TITAN|Quadro|RTX|NVS`)

func (l *smiLog) persistence(c *Card) *finding.Finding {
	mode, _ := c.node.text("persistence_mode")
	if mode != "Disabled" || l.windows || desktop.MatchString(c.Name) || c.listed > 0 {
		return nil
	}
	return &finding.Finding{Title: "persistence mode is off: the driver leaves between jobs, and each first call takes seconds", Confidence: finding.Low,
		Evidence: []finding.Evidence{says("persistence_mode", mode, "persistence mode %s", mode)}, Fix: "sudo systemctl enable --now nvidia-persistenced", Gain: finding.Gain{Text: "some seconds at the start of each job"}, DisprovedBy: "nvidia-persistenced runs, or a process keeps the card open"}
}

// smiHealth is what is said to be well where no rule of that number speaks, of the cards whose answers have it.
var smiHealth = []struct {
	rule, text string
	known      func(*Card) bool
}{
	{"D49", "memory: no errors that were not corrected", func(c *Card) bool { return slices.ContainsFunc(uncorrected, c.counts) }},
	{"D49", "memory: nothing is to be replaced by spare", func(c *Card) bool {
		return slices.ContainsFunc(pendings, func(path string) bool { return c.says(path, "No") })
	}},
	{"D54", "neither heat nor a lack of power holds the clocks down", (*Card).unheld},
	{"D55", "links have all of their lanes", func(c *Card) bool { return c.Width != nil && c.WidthMax != nil }},
	{"D50", "no card wants a reset", func(c *Card) bool {
		return c.says("gpu_recovery_action", "None") || c.says("gpu_reset_status/reset_required", "No")
	}},
}

// counts tells that a card has a number of errors of a name since its driver started.
func (c *Card) counts(name string) bool {
	_, ok := c.node.number("ecc_errors/volatile/" + name)
	return ok
}

// says tells that a value stands as it is at a path: a "None" that is an answer, and not the lack of one.
func (c *Card) says(path, value string) bool {
	n := c.node.at(path)
	return n != nil && strings.TrimSpace(n.value) == value
}

// unheld tells that a card names the reasons for its clocks, and that none of them is that it lacks cooling or power.
func (c *Card) unheld() bool {
	return c.reasons&(byHeat|0x8|0x80) == 0 && slices.ContainsFunc([]string{"clocks_event_reasons", "clocks_throttle_reasons"}, func(name string) bool {
		n := c.node.at(name)
		return n != nil && slices.ContainsFunc(n.parts, func(p *node) bool { return strings.HasSuffix(strings.TrimSpace(p.value), "Active") })
	})
}

// healthy says what was looked at, and of how many cards where not all have it. A figure that is not there is not well.
func (l *smiLog) healthy(r *finding.Report) {
	for _, h := range smiHealth {
		if slices.ContainsFunc(r.Findings, func(f finding.Finding) bool { return f.Rule == h.rule }) {
			continue
		}
		n := 0
		for _, c := range l.cards {
			if h.known(c) {
				n++
			}
		}
		switch {
		case n == 0:
		case n == len(l.cards):
			r.Checked = append(r.Checked, h.text)
		default:
			r.Checked = append(r.Checked, fmt.Sprintf("%s (%d of %d cards tell)", h.text, n, len(l.cards)))
		}
	}
}
