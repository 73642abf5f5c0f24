package metric

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// Average says how the figures of classes become one, by the names of scikit-learn.
type Average string

// The averages.
const (
	Micro    Average = "micro"    // of all decisions together; with one label per sample it is the accuracy, but for IoU
	Macro    Average = "macro"    // each class counts the same
	Weighted Average = "weighted" // each class counts by its samples
)

// Averages are figures over classes.
type Averages struct{ Precision, Recall, F1, IoU float64 }

// cells are a class's samples that were recognised, those taken for others, and others taken for it.
type cells struct{ hit, missed, false int }

func (c cells) precision() float64 { return zero(c.hit, c.hit+c.false) }
func (c cells) recall() float64    { return zero(c.hit, c.hit+c.missed) }
func (c cells) f1() float64        { return zero(2*c.hit, 2*c.hit+c.false+c.missed) }
func (c cells) iou() float64       { return zero(c.hit, c.hit+c.false+c.missed) }

// zero is a share, 0 of nothing: scikit-learn's zero_division.
func zero(n, of int) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func (c *Confusion) cells() []cells {
	counts := c.Counts()
	out := make([]cells, len(counts))
	for i, row := range counts {
		for j, n := range row {
			if i == j {
				out[i].hit = n
				continue
			}
			out[i].missed += n
			out[j].false += n
		}
	}
	return out
}

// Average is precision, recall, F1 and intersection over union (Jaccard's index) over the classes that occur among labels or
// predictions. A share of nothing, such as the precision of a class that is never predicted, is 0: as scikit-learn has it unless told
// otherwise. They are NaN when nothing was counted. It waits for the device.
func (c *Confusion) Average(a Average) Averages {
	each := c.cells()
	var sum cells
	var out Averages
	total := 0.0
	for _, k := range each {
		sum.hit, sum.missed, sum.false = sum.hit+k.hit, sum.missed+k.missed, sum.false+k.false
		w := 1.0
		switch {
		case k == cells{}:
			continue
		case a == Weighted:
			w = float64(k.hit + k.missed)
		}
		total += w
		out.Precision += w * k.precision()
		out.Recall += w * k.recall()
		out.F1 += w * k.f1()
		out.IoU += w * k.iou()
	}
	switch a {
	case Micro:
		if sum.hit+sum.missed == 0 {
			return Averages{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
		}
		return Averages{sum.precision(), sum.recall(), sum.f1(), sum.iou()}
	case Macro, Weighted:
		return Averages{out.Precision / total, out.Recall / total, out.F1 / total, out.IoU / total}
	}
	tensor.Raise("Confusion.Average", fmt.Sprintf("use %q, %q or %q", Micro, Macro, Weighted), "there is no average %q", a)
	return out
}

// F1 is the harmonic mean of precision and recall of each class, NaN for a class that is neither label nor prediction.
func (c *Confusion) F1() []float64 {
	return c.each(func(k cells) (int, int) { return 2 * k.hit, 2*k.hit + k.false + k.missed })
}

// IoU is the intersection of labels and predictions over their union for each class, NaN for a class that is neither. Its mean, which
// is that of segmentation, is Average(Macro).IoU.
func (c *Confusion) IoU() []float64 {
	return c.each(func(k cells) (int, int) { return k.hit, k.hit + k.false + k.missed })
}

func (c *Confusion) each(share func(k cells) (n, of int)) []float64 {
	var out []float64
	for _, k := range c.cells() {
		out = append(out, ratio(share(k)))
	}
	return out
}

// Merge adds what another matrix of as many classes has counted, on any device. It waits for that device.
func (c *Confusion) Merge(o *Confusion) {
	if o.classes != c.classes {
		tensor.Raise("Confusion.Merge", "merge matrices of the same task", "%d classes and %d", c.classes, o.classes)
	}
	c.counts.Env().NoGrad().Do(func(e *tensor.Env) *tensor.Tensor {
		c.counts.AddInPlace(o.counts.To(e))
		return nil
	})
}
