package kineto

import (
	"fmt"
	"math"
	"time"

	"github.com/warpline-ml/warpline/internal/finding"
)

// products are the kernels of matrix products, convolutions and attention in the window, and their times.
func (a *analysis) products() (tensor, plain []total, onTensor, beside int64) {
	tensor = a.totals(func(e *event) bool { return e.kind == kernel && a.class(e)&isTensor != 0 })
	plain = a.totals(func(e *event) bool { return e.kind == kernel && a.class(e)&isPlain != 0 })
	for _, t := range tensor {
		onTensor += t.ns
	}
	for _, t := range plain {
		beside += t.ns
	}
	return tensor, plain, onTensor, beside
}

// productShare is the products' share of the device's time.
func (a *analysis) productShare() float64 {
	_, _, on, beside := a.products()
	return float64(on+beside) / float64(max(a.busy.total(), 1))
}

// beside: matrix products beside tensor cores leave most of a card aside. Where TF32 needs one switch, R23 says it.
func beside(a *analysis) *finding.Finding {
	return a.besideTensorCores(`torch.autocast("cuda", torch.float16) with torch.amp.GradScaler`)
}

// withoutTF32: one switch puts products of float32 on tensor cores.
func withoutTF32(a *analysis) *finding.Finding {
	return a.besideTensorCores(`torch.set_float32_matmul_precision("high") (TF32; for convolutions torch.backends.cudnn.allow_tf32=True), or torch.autocast("cuda", torch.bfloat16)`)
}

// tf32 tells a card that has TF32.
func (a *analysis) tf32(sm int) bool { return sm >= 80 && !a.amd }

func (a *analysis) besideTensorCores(fix string) *finding.Finding {
	sm, named := a.arch()
	_, plain, on, off := a.products()
	if off <= on || float64(on+off) < productShare*float64(a.busy.total()) {
		return nil
	}
	f := &finding.Finding{
		Title: fmt.Sprintf("%s of the time of matrix products and convolutions is spent beside tensor cores", percent(float64(off)/float64(on+off))),
		Fix:   fix,
		Gain: a.replayed(change{scale: func(i int) float64 {
			if e := &a.device[i]; e.kind == kernel && a.class(e)&isPlain != 0 {
				return 0.5
			}
			return 1
		}}, off/2, "these kernels twice as fast, where tensor cores give 1.5 to 3 in practice"),
		Confidence:  finding.High,
		DisprovedBy: "the same step with the switch or under autocast, no shorter",
	}
	f.Evidence = append(f.Evidence, part("tensor_share", float64(on)/float64(on+off), "%s of %s %s on tensor cores", percent(float64(on)/float64(on+off)), duration(a.perStep(on+off)), a.each()))
	for _, t := range plain[:min(3, len(plain))] {
		f.Evidence = append(f.Evidence, timing("kernel", t.ns, "%s: %d in %s, %s", shortName(a.names.names[t.name]), t.count, a.windowText(), duration(t.ns)))
	}
	if named {
		f.Confidence = finding.Medium
		f.Evidence = append(f.Evidence, says("the file does not name the card; kernels' names are of compute capability %d.%d at least", sm/10, sm%10))
	}
	f.Evidence = append(f.Evidence, a.precision(sm))
	return f
}

// precision says which of the ways to tensor cores a card has.
func (a *analysis) precision(sm int) finding.Evidence {
	switch {
	case a.amd:
		return says("%s has matrix cores, which mixed precision reaches", a.card())
	case a.tf32(sm):
		return says("%s has TF32 and bfloat16 (compute capability %d.%d)", a.card(), sm/10, sm%10)
	}
	return says("%s (compute capability %d.%d) has no TF32, which needs 8.0: mixed precision with float16 (AMP) is the way", a.card(), sm/10, sm%10)
}

// fewBlocks: kernels with fewer blocks than the card has multiprocessors leave some of them idle.
func fewBlocks(a *analysis) *finding.Finding {
	share, lost := a.filledShare()
	if share >= smShare || a.share(a.busy.total()) < halfBusy {
		return nil
	}
	return &finding.Finding{
		Title:       fmt.Sprintf("Kernels fill %s of the card's multiprocessors on average", percent(share)),
		Evidence:    []finding.Evidence{part("est_sm_efficiency", share, "the smaller of 1 and blocks per multiprocessor, weighted with kernels' times: %.2f", share)},
		Fix:         "a larger batch, or larger pieces of work in a launch",
		Gain:        a.saves(time.Duration(a.perStep(lost)), "at most: multiprocessors that have no block, were they used alike"),
		Confidence:  finding.Low,
		DisprovedBy: "a batch twice as large that takes twice as long",
	}
}

// filledShare is TensorBoard's estimate of the multiprocessors' efficiency, and the time that the rest of them is.
func (a *analysis) filledShare() (share float64, lost int64) {
	var ns, used float64
	for i := a.first; i < a.last; i++ {
		e := &a.device[i]
		if e.kind != kernel || e.aux == 0 || a.class(e)&isComm != 0 {
			continue
		}
		ns += float64(e.dur)
		used += float64(e.dur) * math.Min(float64(math.Float32frombits(e.aux)), 1)
	}
	if ns == 0 {
		return 1, 0
	}
	return used / ns, int64(ns - used)
}

// memoryBound: operations on each element read and write memory once each.
func memoryBound(a *analysis) *finding.Finding {
	rows := a.totals(func(e *event) bool { return e.kind == kernel && a.class(e)&isShort != 0 && !fused(a.Name(e)) })
	var ns int64
	n := 0
	for _, r := range rows {
		ns, n = ns+r.ns, n+r.count
	}
	busy := max(a.busy.total(), 1)
	if float64(ns) <= moveShare*float64(busy) || a.share(a.busy.total()) < halfBusy {
		return nil
	}
	gain := a.gain(change{scale: func(i int) float64 {
		if e := &a.device[i]; e.kind == kernel && a.class(e)&isShort != 0 && !fused(a.Name(e)) {
			return 0.5
		}
		return 1
	}})
	if !a.worth(gain) {
		return nil
	}
	f := &finding.Finding{
		Title:       fmt.Sprintf("%s of the GPU's time goes to operations that only read and write memory", percent(float64(ns)/float64(busy))),
		Evidence:    []finding.Evidence{counted("kernels", n, "%d such kernels in %s, %s", n, a.windowText(), duration(ns))},
		Fix:         "fuse them: torch.compile(model); for normalisations and activations also channels_last and fused implementations",
		Gain:        a.saves(gain, "two of them fused into one each, by a replay of the timeline"),
		Confidence:  finding.Medium,
		DisprovedBy: "the same step under torch.compile, no shorter",
	}
	for _, r := range rows[:min(3, len(rows))] {
		f.Evidence = append(f.Evidence, timing("kernel", r.ns, "%s: %d in %s, %s", shortName(a.names.names[r.name]), r.count, a.windowText(), duration(r.ns)))
	}
	return f
}
