package simrun

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Hint is advice about a line: what is right, and slow or doubtful. It is no finding.
type Hint struct {
	Kind       string  `json:"kind"` // synccheck, bank conflicts or uncoalesced
	Kernel     string  `json:"kernel"`
	Line       int     `json:"ptx_line"`
	PTX        string  `json:"ptx"`
	Source     string  `json:"source"`
	SourceText string  `json:"source_text"`
	Message    string  `json:"message"`
	Count      int     `json:"count"`
	Gain       float64 `json:"seconds_saved"` // at most, by the model; 0 of synccheck's
	gain       string
}

// A line gets advice where its accesses take so many times what they would need, and what they take beyond it is this share of all
// that the kernel's accesses take.
const (
	hintFactor = 2
	hintShare  = 0.05
)

// spent is what a launch took, in all and by line.
type spent struct {
	card      *cards.Card
	counters  gpusim.Counters
	lines     []Line
	model     *Model // nil where nothing was counted
	work      estimate.Launch
	registers int
}

// Hints is advice about a launch on a card of which the report has told, with its lines: what synccheck says, and lines with bank conflicts
// or uncoalesced accesses, those first from whose repair the model expects most.
func (m *Module) Hints(card string, kernel string, rep *gpusim.Report, lines []gpusim.Line) []Hint {
	c, err := findCard(card)
	if err != nil {
		return nil
	}
	return m.hints(rep, &spent{&c, rep.Counters, m.counted(lines), newModel(&c, rep.Work, rep.Registers), rep.Work, rep.Registers}, kernel)
}

func (m *file) hints(rep *gpusim.Report, s *spent, kernel string) []Hint {
	list := []Hint{}
	for _, f := range rep.Advice {
		list = append(list, Hint{Kind: f.Check.String(), Line: f.Line, PTX: strings.TrimSpace(m.line(f.Line)), Source: f.Source,
			SourceText: m.sourceLine(f.Source), Message: f.Msg, Count: f.Count})
	}
	if s.model != nil {
		slow := s.slowLines()
		sorting.By(slow, func(a, b Hint) int { return cmp.Compare(b.Gain, a.Gain) })
		list = append(list, slow...)
	}
	for i := range list {
		list[i].Kernel = kernel
	}
	return list
}

func (s *spent) slowLines() (list []Hint) {
	for _, l := range hottest(s.lines) {
		if all, extra := l.SharedWavefronts, l.BankConflicts; wasteful(all, extra, s.counters.SharedWavefronts) {
			w := s.work
			w.Wavefronts = max(w.Wavefronts-float64(extra), 0)
			list = append(list, l.hint("bank conflicts", fmt.Sprintf(
				"%.2f passes over the banks of shared memory a request, where %.2f would do: lanes of a warp access different words of the same bank",
				share(all, l.SharedRequests), share(all-extra, l.SharedRequests)), &w, s))
		}
		if all, need := l.GlobalSectors, max(l.asked/estimate.SectorBytes, l.GlobalRequests); need < all && wasteful(all, all-need, s.counters.GlobalSectors) {
			w := s.work
			w.Requested = max(w.Requested-float64(all-need), 0)
			w.Unique = min(w.Unique, w.Requested)
			list = append(list, l.hint("uncoalesced", fmt.Sprintf(
				"%.2f sectors of global memory a request, where %.2f would hold what the lanes access: neighbouring lanes access places that are far apart",
				share(all, l.GlobalRequests), share(need, l.GlobalRequests)), &w, s))
		}
	}
	return list
}

// wasteful is whether what a line takes beyond its need matters.
func wasteful(all, extra, ofKernel uint64) bool {
	return extra > 0 && all >= hintFactor*(all-extra) && float64(extra) >= hintShare*float64(ofKernel)
}

// hint is advice about a line, without whose waste the kernel is as w.
func (l *Line) hint(kind, message string, w *estimate.Launch, s *spent) Hint {
	w.Registers = s.registers
	without := min(estimate.Time(s.card, w).Seconds, s.model.Seconds)
	h := Hint{Kind: kind, Line: l.Line, PTX: l.PTX, Source: l.Source, SourceText: l.text, Message: message, Count: 1, Gain: s.model.Seconds - without}
	h.gain = fmt.Sprintf("%s instead of %s by the model", seconds(without), seconds(s.model.Seconds))
	if h.Gain < 0.01*s.model.Seconds {
		h.gain = "none by the model: the kernel is limited by " + s.model.Limiter
	}
	return h
}

// Text is the advice for people.
func (h *Hint) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nadvice, %s: %s", h.Kind, h.Message)
	if h.Count > 1 {
		fmt.Fprintf(&b, " (%d times)", h.Count)
	}
	b.WriteByte('\n')
	if h.Source != "" {
		fmt.Fprintf(&b, "  source    %s\n", strings.TrimSpace(h.Source+"  "+h.SourceText))
	}
	fmt.Fprintf(&b, "  PTX       line %d  %s\n", h.Line, strings.ReplaceAll(h.PTX, "\t", " "))
	if h.gain != "" {
		fmt.Fprintf(&b, "  gain      %s\n", h.gain)
	}
	return b.String()
}
