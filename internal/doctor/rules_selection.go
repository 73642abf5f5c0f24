package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

var selectionRules = []rule{
	{id: "D18", name: "hidden", step: P8, breaks: true, what: "CUDA_VISIBLE_DEVICES hides no card", can: func(f *Facts) bool { _, set := f.Env[visible]; return set && f.hasCard() }, saw: func(f *Facts) bool { return f.count() > 0 }, judge: hidden},
	{id: "D19", name: "ordinal", step: P8, breaks: true, what: "every rank has a card", can: func(f *Facts) bool { return f.Env["LOCAL_RANK"] != "" && f.CUDA.works() }, saw: (*Facts).sawRank, judge: ordinal},
	{id: "D20", name: "order", step: P10, what: "CUDA numbers the cards as nvidia-smi does", can: func(f *Facts) bool { return len(f.CUDA.Cards) > 1 && len(f.NVML.Cards) > 1 }, saw: (*Facts).sameOrder, judge: order},
	{id: "D21", name: "changed-after-start", step: P10, what: "the process sees the cards that this shell would", can: func(f *Facts) bool { return f.Process != nil && f.Process.Env != nil }, saw: (*Facts).sameCards, judge: changed},
	{id: "D23", name: "mig", step: P8, breaks: true, what: "divided cards have instances, and one is named", can: (*Facts).divided, saw: (*Facts).computes, judge: mig},
	{id: "D33", name: "display-card", step: P10, what: "the first card is none that draws while another is free", can: func(f *Facts) bool { return len(f.NVML.Cards) > 1 }, saw: (*Facts).sawDisplay, judge: displayCard},
}

const visible = "CUDA_VISIBLE_DEVICES"

// Selection is what CUDA makes of CUDA_VISIBLE_DEVICES: tokens up to the first that names no card.
type Selection struct {
	Tokens []string
	Cut    string // the token at which CUDA stops reading; empty: none
	Twice  bool   // a card is named twice: CUDA takes none
}

// Select reads CUDA_VISIBLE_DEVICES on a machine of n cards. A UUID may be cut short, and is taken for one that is there.
func Select(v string, n int) (s Selection) {
	for _, t := range strings.Split(v, ",") {
		t = strings.TrimSpace(t)
		i, err := strconv.Atoi(t)
		uuid := strings.HasPrefix(t, "GPU-") || strings.HasPrefix(t, "MIG-")
		if !uuid && (err != nil || i < 0 || i >= n) {
			s.Cut = t
			return s
		}
		if slices.Contains(s.Tokens, t) {
			s.Twice = true
		}
		s.Tokens = append(s.Tokens, t)
	}
	return s
}

// count is how many cards the machine has, by whoever tells.
func (f *Facts) count() int { return max(len(f.cards()), len(f.NVML.Cards), len(f.cardNodes())) }

func hidden(f *Facts) []ill {
	v, n := f.Env[visible], f.count()
	s := Select(v, n)
	if n == 0 || s.Cut == "" && !s.Twice && strings.TrimSpace(v) != "" && !(f.cudaCode(100) && len(f.NVML.Cards) > 0) {
		return nil
	}
	evidence := []finding.Evidence{value(visible, v, "CUDA_VISIBLE_DEVICES is %q, the machine has cards 0 to %d", v, n-1)}
	switch {
	case s.Twice:
		evidence = append(evidence, value("twice", true, "a card is named twice, and CUDA shows none then"))
	case s.Cut != "" || len(s.Tokens) == 0:
		evidence = append(evidence, value("cut", s.Cut, "CUDA stops reading at %q: it shows %d", s.Cut, len(s.Tokens)))
	default:
		evidence = append(evidence, value("cuInit", f.CUDA.Code, "cuInit gives CUDA_ERROR_NO_DEVICE: none of the names is a card's"))
	}
	title := "CUDA_VISIBLE_DEVICES hides every card"
	if len(s.Tokens) > 0 && !s.Twice && s.Cut != "" {
		title = fmt.Sprintf("CUDA_VISIBLE_DEVICES shows %d of the cards that it names", len(s.Tokens))
	}
	return one(title, evidence, "unset CUDA_VISIBLE_DEVICES", "or set it to numbers from 0 on with commas between, or to UUIDs of nvidia-smi -L; it is read once, when a program first uses CUDA", finding.High, "the batch system set it so on purpose")
}

func ordinal(f *Facts) []ill {
	rank, err := strconv.Atoi(f.Env["LOCAL_RANK"])
	if err != nil || rank < len(f.CUDA.Cards) {
		return nil
	}
	return one("this rank asks for a card that it does not see", []finding.Evidence{value("LOCAL_RANK", rank, "LOCAL_RANK is %d, CUDA shows %d cards, numbered from 0", rank, len(f.CUDA.Cards))},
		fmt.Sprintf("torchrun --nproc-per-node=%d …", len(f.CUDA.Cards)), "one process for a card; where the batch system shows each process one card only, the program must take cuda:0", finding.High, "the program does not use LOCAL_RANK for its card")
}

func order(f *Facts) []ill {
	names := map[string]bool{}
	for _, c := range f.CUDA.Cards {
		names[c.Name] = true
	}
	if f.Env["CUDA_DEVICE_ORDER"] != "" || len(names) < 2 || len(f.CUDA.Cards) != len(f.NVML.Cards) {
		return nil
	}
	for i, c := range f.CUDA.Cards {
		if c.Bus != "" && c.Bus != f.NVML.Cards[i].Bus {
			return gains(one("CUDA numbers the cards in another order than nvidia-smi", []finding.Evidence{value("order", i, "cuda:%d is %s at %s, nvidia-smi's %d is %s", i, c.Name, c.Bus, i, f.NVML.Cards[i].Name)},
				"export CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA puts the fastest first unless it is told otherwise", finding.High, "nvidia-smi -L and this program list them alike"), "the card that was meant")
		}
	}
	return nil
}

// selecting are the variables that say which cards a process sees.
var selecting = []string{visible, "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"}

func changed(f *Facts) []ill {
	p := f.Process
	for _, name := range selecting {
		theirs, has := p.Env[name]
		ours, have := f.Env[name]
		if has && have && theirs != ours {
			return gains(one("the process was started with other cards than this shell has", []finding.Evidence{value(name, theirs, "%s is %q in process %d and %q here; what a program sets after its first use of CUDA counts for nothing", name, theirs, p.PID, ours)},
				fmt.Sprintf("export %s=%s", name, ours), "and start the program again", finding.Medium, "the difference is wanted"), "the cards that were meant")
		}
	}
	return nil
}

func (f *Facts) divided() bool {
	return slices.ContainsFunc(f.NVML.Cards, func(c NVMLCard) bool { return c.is(keyMIG, 1) })
}

func mig(f *Facts) []ill {
	for _, c := range f.NVML.Cards {
		switch {
		case !c.is(keyMIG, 1):
		case c.Instances == 0:
			return one("a card is divided (MIG) and has no instance to compute on", []finding.Evidence{value("instances", 0, "card %d has MIG on and no instances", c.Index)},
				fmt.Sprintf("sudo nvidia-smi mig -i %d -cgi 0 -C", c.Index), "makes one of the whole card; or sudo nvidia-smi -i N -mig 0 turns it off", finding.High, "nvidia-smi -L lists instances")
		case f.CUDA.works() && len(f.CUDA.Cards) == 0 || f.cudaCode(100):
			caps := f.refusedCaps()
			evidence := []finding.Evidence{value("instances", c.Instances, "card %d has %d instances, and CUDA shows none", c.Index, c.Instances)}
			if caps != "" {
				evidence = append(evidence, value("caps", caps, "this user may not open %s", caps))
			}
			return one("this process may use no instance of the divided card", evidence, "export CUDA_VISIBLE_DEVICES=$(nvidia-smi -L | grep -o 'MIG-[0-9a-f-]*' | head -1)",
				"a process uses one instance; each rank needs its own, and NCCL does not connect them", finding.Medium, "CUDA_VISIBLE_DEVICES names an instance of nvidia-smi -L")
		}
	}
	return nil
}

func (f *Facts) refusedCaps() string {
	for _, n := range f.Nodes {
		if strings.HasPrefix(n.Path, "/dev/nvidia-caps/") && (n.Open == "EACCES" || n.Open == "EPERM") {
			return n.Path
		}
	}
	return ""
}

func displayCard(f *Facts) []ill {
	first := &f.NVML.Cards[0]
	if !first.is(keyDisplay, 1) || first.Values[keyFree] >= 0.8*first.Values[keyTotal] || f.Env[visible] != "" {
		return nil
	}
	for i := 1; i < len(f.NVML.Cards); i++ {
		c := &f.NVML.Cards[i]
		if !c.is(keyDisplay, 1) && c.Values[keyFree] > first.Values[keyFree] {
			return gains(one("the first card draws the screen, and another is free", []finding.Evidence{value(keyFree, first.Values[keyFree], "card 0 has %.1f GiB free and a display, card %d has %.1f GiB and none", first.Values[keyFree]/(1<<30), c.Index, c.Values[keyFree]/(1<<30))},
				fmt.Sprintf("export CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=%d", c.Index), "", finding.Medium, "the first card is the faster one by more than what the screen takes"), "more memory, and no watchdog of the display")
		}
	}
	return nil
}
