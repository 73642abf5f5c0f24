package doctor

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/internal/xid"
)

var healthRules = []rule{
	{id: "D49", name: "memory-errors", step: P10, what: "the cards' memory has no errors that stay", can: (*Facts).hasCards, saw: (*Facts).countsErrors, judge: memoryErrors},
	{id: "D50", name: "timeouts", step: P10, what: "no card stopped answering its driver", can: (*Facts).hasLog, saw: (*Facts).loaded, judge: timeouts},
	{id: "D51", name: "inforom", step: P7, what: "the cards' own records are whole", can: (*Facts).askedNVML, saw: (*Facts).hasCards, judge: infoROM},
	{id: "D52", name: "nvlink", step: P10, what: "all NVLinks are up", can: (*Facts).hasCards, saw: (*Facts).linked, judge: nvlink},
	{id: "D53", name: "power", step: P10, what: "the cards have their power", can: func(f *Facts) bool { return f.askedNVML() || f.hasLog() }, saw: (*Facts).answering, judge: power},
	{id: "D65", name: "pending", step: P10, what: "no mode waits for a reset", can: (*Facts).hasCards, saw: (*Facts).sawPending, judge: pending},
	{id: "D50", name: "reset-required", step: P7, breaks: true, what: "no card wants a reset", can: (*Facts).askedNVML, saw: (*Facts).answering, judge: resetRequired},
}

func (f *Facts) hasCards() bool { return f.NVML.works() && len(f.NVML.Cards) > 0 }

func (f *Facts) hasLog() bool { return f.hasCard() && f.Kernel.Log.Source != "" }

func (f *Facts) askedNVML() bool { return f.hasCard() && f.NVML.Asked && !f.NVML.Missing }

// xids is evidence of the driver's errors in the kernel's log that are of a rule and want something done, by package xid.
func (f *Facts) xids(rule string) []finding.Evidence {
	return f.errors(func(c xid.Code) bool { return c.Rule == rule && c.Class != xid.Ignore && c.Class != xid.Unknown })
}

func (f *Facts) errors(which func(c xid.Code) bool) (out []finding.Evidence) {
	for _, e := range f.events(Xid) {
		if c := xid.Of(e.Xid); which(c) {
			out = append(out, value("xid", e.Xid, "%v of %s, %d times in the kernel's log", c, e.Bus, e.Count))
		}
	}
	return out
}

func memoryErrors(f *Facts) []ill {
	evidence := f.xids("D49")
	replace, reset, card := false, false, 0
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		if n := c.Values[keyECCErrors]; n > 0 {
			evidence = append(evidence, value(keyECCErrors, n, "card %d: %.0f errors of memory that were not corrected since the driver started", c.Index, n))
		}
		failed := c.is(keyRemapFailed, 1) || c.Values[keyRetiredSBE]+c.Values[keyRetiredDBE] >= xid.MostRetired || c.Values[keyRemapped] >= xid.MostRemapped
		if failed {
			evidence = append(evidence, value(keyRemapFailed, c.Values[keyRemapped], "card %d: remapping failed, or %.0f rows remapped and %.0f pages retired", c.Index, c.Values[keyRemapped], c.Values[keyRetiredSBE]+c.Values[keyRetiredDBE]))
			replace, card = true, c.Index
		}
		if c.is(keyRemapping, 1) || c.is(keyRetiring, 1) {
			evidence = append(evidence, value(keyRemapping, 1, "card %d: memory is to be replaced by spare at the next reset", c.Index))
			reset, card = true, c.Index
		}
	}
	switch {
	case evidence == nil:
		return nil
	case replace:
		return gains(one("a card's memory is worn out", evidence, fmt.Sprintf("nvidia-smi -q -i %d -d ROW_REMAPPER,PAGE_RETIREMENT,ECC", card), "the maker replaces such a card: keep this and nvidia-bug-report.sh", finding.High, "the counters are of another card"), "results that are right, and jobs that end")
	case reset:
		return gains(one("a card wants a reset, so that spare memory takes the place of what failed", evidence, fmt.Sprintf("sudo nvidia-smi -i %d --gpu-reset", card), "after what uses the card has ended; where that is refused, reboot", finding.High, "nvidia-smi -q -d ROW_REMAPPER says Pending: No"), "jobs that do not end with error 214")
	}
	return gains(one("a card's memory had errors that were not corrected", evidence, "nvidia-smi -q -d ECC,ROW_REMAPPER", "jobs of that time are to be run again; once is no reason to replace the card, again and again is", finding.Medium, "the errors are of before the last reset"), "jobs that do not end with error 214")
}

func timeouts(f *Facts) []ill {
	evidence := f.xids("D50")
	if evidence == nil {
		return unexplained(f)
	}
	return gains(one("a card stopped answering its driver", evidence, "sudo nvidia-smi --gpu-reset", "after what uses the card has ended; a newer driver if it comes again (119 and 120 are of the card's own firmware)", finding.Medium, "it happened once, and before the last start of the driver"), "jobs that do not hang")
}

// unexplained tells of numbers that package xid does not explain.
func unexplained(f *Facts) []ill {
	evidence := f.errors(func(c xid.Code) bool { return c.Class == xid.Unknown })
	if evidence == nil {
		return nil
	}
	w := xid.Unexplained
	return gains(one(w.Title, evidence, "sudo nvidia-bug-report.sh", w.Fix, finding.Low, w.Disproved), "a cause, if jobs failed then")
}

func infoROM(f *Facts) []ill {
	evidence := f.xids("D51")
	if f.nvmlCode(14) {
		evidence = append(evidence, value("nvml", 14, "NVML gives NVML_ERROR_CORRUPTED_INFOROM"))
	}
	for _, c := range f.NVML.Cards {
		if c.Code == 14 {
			evidence = append(evidence, value("nvml", 14, "card %d: NVML gives NVML_ERROR_CORRUPTED_INFOROM", c.Index))
		}
	}
	for _, e := range f.events(CorruptInfoROM) {
		evidence = append(evidence, value("log", e.Count, "the driver warns of the InfoROM of %s", e.Bus))
	}
	if evidence == nil {
		return nil
	}
	return gains(one("a card's own record (InfoROM) is damaged", evidence, "nvidia-smi -q | grep -A4 -i inforom", "it computes for now; its maker flashes or replaces it", finding.High, "nvidia-smi prints no warning of it"), "a card that its maker still takes back")
}

// linksOf are the NVLinks of models, by a part of their names.
var linksOf = []struct {
	name  string
	links int
}{{"B200", 18}, {"H200", 18}, {"H100 80GB HBM3", 18}, {"H100 SXM", 18}, {"A100-SXM", 12}, {"V100-SXM2", 6}, {"V100-SXM3", 6}}

func nvlink(f *Facts) []ill {
	evidence := f.xids("D52")
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		up := 0
		for _, u := range c.Links {
			if u {
				up++
			}
		}
		want := len(c.Links)
		if n := madeWith(c.Name); n > 0 && (up > 0 || want > 0 && f.Fabric.Switches > 0) { // one card of several, lent to a virtual machine, has all of them down
			want = n
		} else if up == 0 {
			want = 0
		}
		if up < want {
			evidence = append(evidence, value("links", up, "card %d, %s: %d of %d NVLinks are up", c.Index, c.Name, up, want))
		}
	}
	if f.cudaCode(220) {
		evidence = append(evidence, value("cuInit", 220, "CUDA gives CUDA_ERROR_NVLINK_UNCORRECTABLE"))
	}
	if evidence == nil {
		return nil
	}
	return gains(one("links between cards are down or have errors", evidence, "nvidia-smi nvlink -s && nvidia-smi nvlink -e", "a reset of all cards together brings links up; a bridge or a card that is not seated keeps them down", finding.Medium, "the machine was built with fewer links"), "collectives at the links' speed")
}

// madeWith is how many NVLinks a model has, 0 of one that is not known.
func madeWith(name string) int {
	for _, m := range linksOf {
		if strings.Contains(name, m.name) {
			return m.links
		}
	}
	return 0
}

func power(f *Facts) []ill {
	evidence := f.xids("D53")
	for _, e := range f.events(PowerCable) {
		evidence = append(evidence, value("log", e.Count, "the driver says that a power cable of %s is not connected", e.Bus))
	}
	for _, c := range f.NVML.Cards {
		if c.Reasons&0x80 != 0 {
			evidence = append(evidence, value("clock_reasons", c.Reasons, "card %d: the power supply asks it to slow down", c.Index))
		}
		if c.Code == 8 {
			evidence = append(evidence, value("nvml", 8, "card %d: NVML gives NVML_ERROR_INSUFFICIENT_POWER", c.Index))
		}
	}
	if f.nvmlCode(8) {
		evidence = append(evidence, value("nvml", 8, "NVML gives NVML_ERROR_INSUFFICIENT_POWER"))
	}
	if evidence == nil {
		return nil
	}
	return gains(one("a card lacks power", evidence, "nvidia-smi -q -d POWER,PERFORMANCE", "with the machine off, look at every power cable of the card and at the supply", finding.High, "all cables are in, and the reason does not come again under load"), "the card's clocks, and that it stays")
}

func pending(f *Facts) []ill {
	var evidence []finding.Evidence
	card := 0
	for i := range f.NVML.Cards {
		c := &f.NVML.Cards[i]
		for now, later := range map[string]string{keyECC: keyECCPending, keyMIG: keyMIGPending} {
			a, ok := c.value(now)
			b, ok2 := c.value(later)
			if ok && ok2 && a != b {
				evidence, card = append(evidence, value(now, a, "card %d: %s is %.0f now and %.0f after the next reset", c.Index, now, a, b)), c.Index
			}
		}
	}
	if evidence == nil {
		return nil
	}
	sorting.By(evidence, func(a, b finding.Evidence) int { return strings.Compare(a.Text, b.Text) })
	return gains(one("a mode of a card was changed and waits for a reset", evidence, fmt.Sprintf("sudo nvidia-smi -i %d --gpu-reset", card), "after what uses the card has ended; where that is refused, reboot", finding.High, "nvidia-smi -q has Current and Pending alike"), "the mode that was asked for")
}

func resetRequired(f *Facts) []ill {
	for _, c := range f.NVML.Cards {
		if c.Code == 16 {
			return one("a card wants a reset before it computes again", append([]finding.Evidence{value("nvml", 16, "card %d: NVML gives NVML_ERROR_RESET_REQUIRED", c.Index)}, f.errors(func(c xid.Code) bool { return c.Class == xid.Reset })...),
				fmt.Sprintf("sudo nvidia-smi -i %d --gpu-reset", c.Index), "after what uses the card has ended; where that is refused, reboot", finding.High, "nvidia-smi -q lists the card's figures")
		}
	}
	return nil
}
