package metric

import (
	"cmp"
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/tensor"
)

// ROC measures how well scores rank samples. It keeps all scores on the host. The zero value is empty.
type ROC struct {
	classes int // 1: scores are of the one class that labels 1 and 0 tell
	scores  []float64
	labels  []int
}

// Add counts scores [N] of the positive class with labels 0 and 1 (or booleans), or scores [N, classes] with labels [N]. It waits for the
// device.
func (r *ROC) Add(scores, labels *tensor.Tensor) {
	classes := 1
	if scores.Rank() == 2 {
		classes = scores.Dim(1)
	}
	if scores.Rank() > 2 || scores.Rank() == 0 || labels.Rank() != 1 || labels.Dim(0) != scores.Dim(0) || r.classes != 0 && r.classes != classes {
		tensor.Raise("ROC.Add", "give scores [N] or [N, classes], the same in each batch, and labels [N]", "scores of shape %v, labels of shape %v", scores.Shape(), labels.Shape())
	}
	most := max(classes-1, 1)
	for _, y := range labels.Cast(dtype.I64).Floats() {
		if y < 0 || int(y) > most {
			tensor.Raise("ROC.Add", fmt.Sprintf("labels count from 0 to %d", most), "label %v", y)
		}
		r.labels = append(r.labels, int(y))
	}
	r.classes = classes
	r.scores = append(r.scores, scores.Detach().Cast(dtype.F64).Floats()...)
}

// Merge adds what another has counted.
func (r *ROC) Merge(o *ROC) {
	if r.classes != 0 && o.classes != 0 && r.classes != o.classes {
		tensor.Raise("ROC.Merge", "merge those of the same task", "%d classes and %d", r.classes, o.classes)
	}
	r.classes = max(r.classes, o.classes)
	r.scores, r.labels = append(r.scores, o.scores...), append(r.labels, o.labels...)
}

// AUC is the area under the curve of true over false positives: the chance that a positive sample has a higher score than a
// negative one, of equal scores half. Of several classes it is that of each class against the rest, averaged by Macro or Weighted; of
// [N, 2] that of class 1. It is NaN where a class has no samples, or all, or a score is NaN: there is nothing to rank.
func (r *ROC) AUC(a Average) float64 {
	if r.classes <= 2 {
		return r.against(r.classes-1, func(y int) bool { return y == 1 }, nil)
	}
	sum, total := 0.0, 0.0
	for c := range r.classes {
		w := r.weight(a, float64(r.count(c)))
		sum += w * r.against(c, func(y int) bool { return y == c }, nil)
		total += w
	}
	return sum / total
}

// AUCPairs is the area averaged over all pairs of classes, each ranked by the score of the one and of the other (Hand and Till, 2001):
// scikit-learn's multi_class="ovo".
func (r *ROC) AUCPairs(a Average) float64 {
	sum, total := 0.0, 0.0
	for i := range r.classes {
		for j := range i {
			pair := func(y int) bool { return y == i || y == j }
			area := (r.against(i, func(y int) bool { return y == i }, pair) + r.against(j, func(y int) bool { return y == j }, pair)) / 2
			w := r.weight(a, float64(r.count(i)+r.count(j)))
			sum += w * area
			total += w
		}
	}
	return sum / total
}

func (r *ROC) weight(a Average, samples float64) float64 {
	switch a {
	case Macro:
		return 1
	case Weighted:
		return samples
	}
	tensor.Raise("ROC.AUC", fmt.Sprintf("use %q or %q", Macro, Weighted), "there is no average %q of areas", a)
	return 0
}

func (r *ROC) count(class int) (n int) {
	for _, y := range r.labels {
		if y == class {
			n++
		}
	}
	return n
}

// against is the area of a class's scores over the samples that among takes, nil: all. It is Mann and Whitney's U from the ranks of
// the positive ones, where equal scores share their mean rank.
func (r *ROC) against(class int, positive, among func(label int) bool) float64 {
	type sample struct {
		score    float64
		positive bool
	}
	var all []sample
	for i, y := range r.labels {
		if among != nil && !among(y) {
			continue
		}
		s := r.scores[i*r.classes+class]
		if math.IsNaN(s) {
			return math.NaN()
		}
		all = append(all, sample{s, positive(y)})
	}
	sorting.By(all, func(a, b sample) int { return cmp.Compare(a.score, b.score) })
	ranks, pos := 0.0, 0
	for from := 0; from < len(all); {
		to := from
		for to < len(all) && all[to].score == all[from].score {
			to++
		}
		for _, s := range all[from:to] {
			if s.positive {
				ranks += float64(from+to+1) / 2
				pos++
			}
		}
		from = to
	}
	p, n := float64(pos), float64(len(all)-pos)
	return (ranks - p*(p+1)/2) / (p * n)
}

// String tells how many samples there are.
func (r *ROC) String() string { return fmt.Sprintf("ranking of %d samples", len(r.labels)) }
