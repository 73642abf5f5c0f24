package errortext

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/finding"
)

// Thresholds of figures that a training prints.
const (
	spike       = 10   // times the median of the norms before it
	normsBefore = 50   // that the median is of
	leastNorms  = 20   // before which a norm is not judged
	badNorms    = 6    // norms in a row that are not finite: single ones are how a scale of the loss finds its place
	mostMFU     = 0.75 // of the peak, that no training of 16 bits reaches
	leastMFU    = 3    // readings
	halvings    = 5    // of the scale of the loss within halvingRun steps, beyond which gradients do not merely overflow
	halvingRun  = 50
	startScale  = 65536 // down to which a scale finds its place
)

// Numbers watches the figures that a training prints of itself: losses, norms of gradients, scales of the loss, utilisation.
type Numbers struct {
	losses, norms int // that were read
	step          float64
	stepped       bool
	interval      float64 // from step to step that is printed, at most

	badLoss  sighting // first loss that is no number
	badCount int
	ended    bool // the last loss is no number
	lastLoss float64
	recent   []float64 // losses, up to five

	window  []float64 // norms that are finite
	badNorm sighting  // first of those in a row that are not
	badRun  int
	worst   int      // longest such row
	spiked  sighting // largest norm over its median
	median  float64  // of the norms before it
	before  float64  // loss before it
	spikes  int

	mfus, highMFUs int
	highest        sighting

	room []printed

	scale float64
	falls []fall
	fell  []fall // more of them in a row than are well
}

// sighting is a figure, and where it stands.
type sighting struct {
	value, step float64
	line        int64
	last        float64 // finite one before it
	text        string
}

// fall is a scale of the loss that is below the one before.
type fall struct {
	scale, at float64
	line      int64
}

// Add takes a line.
func (w *Numbers) Add(text string, line int64) {
	if !figureSet.Any(text) {
		return
	}
	all := w.room[:0]
	eachFigure(text, func(p printed) { all = append(all, p) })
	w.room = all
	if i := slices.IndexFunc(all, func(p printed) bool { return p.kind >= stepFigure && p.kind < epochFigure }); i >= 0 {
		w.steps(all[i].value)
	}
	for _, p := range all {
		at := sighting{value: p.value, step: w.step, line: line, text: text}
		switch p.kind {
		case lossFigure:
			w.loss(at, p, all)
		case normFigure, gnormFigure:
			w.norm(at, p, all)
		case mfuFigure:
			w.mfu(at, p)
		case scaleFigure:
			w.scaled(text, p, line)
		}
	}
}

// steps takes the number of a step.
func (w *Numbers) steps(n float64) {
	if n != math.Trunc(n) || math.IsInf(n, 0) {
		return
	}
	if w.stepped && n > w.step {
		w.interval = max(w.interval, n-w.step)
	}
	w.step, w.stepped = n, true
}

// isFigure tells a figure that is no number from words about it: "loss nan check" and "loss: nan handling" are such.
func isFigure(p printed, all []printed) bool {
	if slices.ContainsFunc(all, func(o printed) bool { return o.kind >= stepFigure || o.kind != p.kind && !notNumber(o.value) }) {
		return true
	}
	behind := strings.TrimLeft(p.rest, " \t)]}'\"")
	if !p.stated {
		_, _, again := numberAhead(strings.TrimPrefix(behind, "("))
		return behind != "" && behind[0] == '(' && again // its average
	}
	return behind == "" || strings.ContainsRune(",;|-(\\/", rune(behind[0])) || stating(behind)
}

// stating tells that a text has a number behind ":" or "=".
func stating(text string) bool {
	for {
		i := strings.IndexAny(text, ":=")
		if i < 0 {
			return false
		}
		text = strings.TrimLeft(text[i+1:], " ")
		if _, _, ok := numberAhead(text); ok {
			return true
		}
	}
}

func notNumber(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

func (w *Numbers) loss(at sighting, p printed, all []printed) {
	if !notNumber(p.value) {
		w.losses++
		w.lastLoss, w.ended = p.value, false
		w.recent = append(w.recent, p.value)
		w.recent = w.recent[max(0, len(w.recent)-5):]
		return
	}
	if !isFigure(p, all) {
		return
	}
	w.losses++
	if w.badCount++; w.badCount == 1 {
		at.last = w.lastLoss
		w.badLoss = at
	}
	w.ended = true
}

func (w *Numbers) norm(at sighting, p printed, all []printed) {
	if notNumber(p.value) {
		if !isFigure(p, all) {
			return
		}
		w.norms++
		if w.badRun++; w.badRun == 1 && w.worst < badNorms {
			w.badNorm = at
			if n := len(w.window); n > 0 {
				w.badNorm.last = w.window[n-1]
			}
		}
		w.worst = max(w.worst, w.badRun)
		return
	}
	w.norms++
	w.badRun = 0
	if m := medianOf(w.window); len(w.window) >= leastNorms && m > 0 && p.value > spike*m {
		if w.spikes++; p.value/m > w.spiked.value/max(w.median, math.SmallestNonzeroFloat64) || w.spikes == 1 {
			at.last = w.window[len(w.window)-1]
			w.spiked, w.median, w.before = at, m, medianOf(w.recent)
		}
	}
	w.window = append(w.window, p.value)
	w.window = w.window[max(0, len(w.window)-normsBefore):]
}

func medianOf(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(v))
	return sorted[len(sorted)/2]
}

func (w *Numbers) mfu(at sighting, p printed) {
	if _, percent := after(strings.TrimLeft(p.rest, " "), "%"); percent || p.value > 2 {
		at.value /= 100
	}
	if !(at.value > 0) || math.IsInf(at.value, 0) {
		return // what is printed before it is known
	}
	w.mfus++
	if at.value > mostMFU {
		w.highMFUs++
	}
	if at.value > w.highest.value {
		w.highest = at
	}
}

// scaled takes a scale of the loss, or what it is reduced to.
func (w *Numbers) scaled(text string, p printed, line int64) {
	v, lowered := p.value, strings.Contains(text, "reducing") || strings.Contains(text, "verflow")
	if _, behind, is := strings.Cut(p.rest, "reducing to "); is {
		if to, _, ok := numberAhead(behind); ok {
			v = to
		}
	}
	if lowered || v < w.scale {
		w.fall(v, line)
	}
	w.scale = v
}

// fall keeps the falls of the last steps, each scale once: every rank prints it.
func (w *Numbers) fall(v float64, line int64) {
	if w.interval == 0 || w.interval > halvingRun || !(v < startScale) || len(w.fell) > 0 {
		return
	}
	w.falls = slices.DeleteFunc(w.falls, func(f fall) bool { return math.Abs(w.step-f.at)+w.interval > halvingRun })
	if !slices.ContainsFunc(w.falls, func(f fall) bool { return f.scale == v }) {
		w.falls = append(w.falls, fall{v, w.step, line})
	}
	if len(w.falls) > halvings {
		w.fell = slices.Clone(w.falls)
	}
}

// Findings are what is wrong with the figures.
func (w *Numbers) Findings() []finding.Finding {
	var all []finding.Finding
	for _, f := range []*finding.Finding{w.notFinite(), w.spikesOf(), w.falling(), w.tooFast()} {
		if f != nil {
			all = append(all, *f)
		}
	}
	return all
}

// Checked are the figures that are well.
func (w *Numbers) Checked() (all []string) {
	if w.losses > 0 && w.badCount == 0 {
		all = append(all, fmt.Sprintf("%d losses, all of them finite", w.losses))
	}
	if w.norms > leastNorms && w.spikes == 0 && w.worst < badNorms && w.badCount == 0 {
		all = append(all, fmt.Sprintf("%d norms of gradients, none above %d times the median before it", w.norms, spike))
	}
	if w.mfus >= leastMFU && 2*w.highMFUs <= w.mfus {
		all = append(all, fmt.Sprintf("utilisation of the peak (MFU) in %d readings, at most %.1f %%", w.mfus, 100*w.highest.value))
	}
	return all
}

// where is a sighting as evidence.
func (s *sighting) where(name string) finding.Evidence {
	return finding.Evidence{Name: name, Value: s.line, Text: fmt.Sprintf("line %d: %s", s.line, clipped(s.text))}
}

// notFinite is the first figure that is no number.
func (w *Numbers) notFinite() *finding.Finding {
	f := &finding.Finding{Rule: "R43", Name: "not-finite", Confidence: finding.High,
		Fix:         "find the first operation that makes it (torch.autograd.set_detect_anomaly(True), or hooks that ask isfinite of inputs, then weights, activations, gradients, in this order); train in bfloat16 in place of float16, clip gradients, lower the learning rate or warm it up",
		Gain:        finding.Gain{Text: "the steps behind it train something"},
		DisprovedBy: "the next losses are finite again and go on as before: a step that was skipped; or it is CTC, which is infinite where a target is longer than its input (zero_infinity=True)"}
	switch {
	case w.badCount > 0:
		f.Title = fmt.Sprintf("the loss is not finite (%v) from line %d on", w.badLoss.value, w.badLoss.line)
		if !w.ended {
			f.Title = fmt.Sprintf("the loss is not finite (%v) in %d of %d readings, first in line %d, and came back", w.badLoss.value, w.badCount, w.losses, w.badLoss.line)
			f.Confidence = finding.Medium
		}
		f.Line = fmt.Sprintf("line %d", w.badLoss.line)
		f.Evidence = []finding.Evidence{w.badLoss.where("text"), {Name: "not_finite", Value: w.badCount, Text: fmt.Sprintf("%d of %d losses are not finite; the last before that was %.6g", w.badCount, w.losses, w.badLoss.last)}}
		if n := len(w.window); n > 0 {
			last := w.window[max(0, n-4):]
			f.Evidence = append(f.Evidence, finding.Evidence{Name: "last_norms", Value: slices.Clone(last), Text: fmt.Sprintf("the last norms of gradients that were finite: %v", last)})
		}
	case w.worst >= badNorms:
		f.Title = fmt.Sprintf("the norm of gradients is not finite (%v) in %d readings in a row, from line %d on", w.badNorm.value, w.worst, w.badNorm.line)
		f.Line = fmt.Sprintf("line %d", w.badNorm.line)
		f.Evidence = []finding.Evidence{w.badNorm.where("text"), {Name: "not_finite", Value: w.worst, Text: fmt.Sprintf("%d in a row; the last before that was %.6g", w.worst, w.badNorm.last)}}
		f.DisprovedBy = "a scale of the loss that falls from a start far above 65536: it skips these steps until it fits"
	default:
		return nil
	}
	return f
}

// spikesOf is that the norm of gradients jumped.
func (w *Numbers) spikesOf() *finding.Finding {
	if w.spikes == 0 || w.badCount > 0 {
		return nil // which says more
	}
	s := &w.spiked
	f := &finding.Finding{Rule: "R46", Name: "gradient-spike", Confidence: finding.Low, Line: fmt.Sprintf("line %d", s.line),
		Title: fmt.Sprintf("the norm of gradients jumped to %.4g, %.0f times the median of those before it", s.value, s.value/w.median),
		Evidence: []finding.Evidence{s.where("text"),
			{Name: "spikes", Value: w.spikes, Text: fmt.Sprintf("%d of %d readings are above %d times the median of up to %d before them", w.spikes, w.norms, spike, normsBefore)}},
		Fix:         "clip gradients (torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)), look at the batch of that step, and lower the learning rate or warm it up for longer if it comes again",
		Gain:        finding.Gain{Text: "a training that does not diverge"},
		DisprovedBy: "the loss goes on as before, since gradients are clipped already: then one is harmless"}
	if len(w.recent) > 0 && w.before != 0 {
		f.Evidence = append(f.Evidence, finding.Evidence{Name: "loss", Value: w.lastLoss, Text: fmt.Sprintf("the loss was %.4g before the largest, and is %.4g at the end", w.before, w.lastLoss)})
		if w.lastLoss > 1.1*math.Abs(w.before) {
			f.Confidence = finding.Medium
		}
	}
	return f
}

// falling is that the scale of the loss falls and falls.
func (w *Numbers) falling() *finding.Finding {
	if len(w.fell) == 0 {
		return nil
	}
	first, last := w.fell[0], w.fell[len(w.fell)-1]
	return &finding.Finding{Rule: "R44", Name: "loss-scale-falls", Confidence: finding.Medium, Line: fmt.Sprintf("line %d", last.line),
		Title: fmt.Sprintf("the scale of the loss fell %d times within %d steps, to %g: gradients are NaN, and do not overflow only now and then", len(w.fell), halvingRun, last.scale),
		Evidence: []finding.Evidence{{Name: "falls", Value: len(w.fell),
			Text: fmt.Sprintf("to %g in line %d, and so on to %g in line %d; falls to %d and above are how it finds its place, and are not counted", first.scale, first.line, last.scale, last.line, startScale)}},
		Fix:         "train in bfloat16, which needs no scale; else find the first NaN (torch.autograd.set_detect_anomaly(True)), clip gradients, warm up the learning rate, and compute softmax and norms in float32",
		Gain:        finding.Gain{Text: "the steps that are skipped"},
		DisprovedBy: "the scale stays where it is, or rises again: then it has found its place"}
}

// tooFast is a utilisation that no card reaches.
func (w *Numbers) tooFast() *finding.Finding {
	if w.mfus < leastMFU || 2*w.highMFUs <= w.mfus {
		return nil
	}
	f := &finding.Finding{Rule: "R49", Name: "mfu-too-high", Confidence: finding.Medium, Line: fmt.Sprintf("line %d", w.highest.line),
		Title: fmt.Sprintf("the log says %.1f %% of the peak (MFU), and no training reaches more than %.0f %%: the formula or the peak is another", 100*w.highest.value, 100*mostMFU),
		Evidence: []finding.Evidence{w.highest.where("text"),
			{Name: "readings", Value: w.highMFUs, Text: fmt.Sprintf("%d of %d readings are above %.0f %%", w.highMFUs, w.mfus, 100*mostMFU)}},
		Fix:         "print which peak and which formula it is: the peak of this card for this type without sparsity (warpline plan WHAT --card CARD has both), 6 FLOP a parameter and token and 12·layers·width·context for attention, nothing for what is recomputed, and only this card's share of the tokens",
		Gain:        finding.Gain{Text: "figures that can be compared"},
		DisprovedBy: "the same FLOP divided by the time of a step that ends with a synchronisation, and by this card's peak, give as much"}
	if w.highest.value > 1 {
		f.Rule, f.Name, f.Confidence = "R48", "faster-than-peak", finding.High
		f.Title = fmt.Sprintf("the log says %.1f %% of the peak (MFU), which cannot be: the time is taken without waiting for the device, or the peak is another card's", 100*w.highest.value)
		f.Fix = "wait for the device before each reading of the clock (torch.cuda.synchronize(), or events); then the peak of this card for this type without sparsity (warpline plan WHAT --card CARD)"
	}
	return f
}
