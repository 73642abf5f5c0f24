package metric

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/tensor"
)

// mostClasses bounds the classes that a confusion matrix is kept of, mostRanked those whose scores are.
const (
	mostClasses = 1000
	mostRanked  = 32
)

// Meters are figures by name, which grow batch by batch. The zero value is empty, and a nil one counts nothing: a step is
// written once, for training and for scores.
type Meters struct {
	means       map[string]*Mean
	perplexity  *Perplexity
	numbers     *Regression
	confusion   *Confusion
	calibration *Calibration
	ranking     *ROC
	right, top5 *Mean
	areas       bool
}

// Classes measures logits [..., classes] against labels [...]: accuracy, top5 of more than five classes, and of at most 1000 precision,
// recall and f1 (macro), ece (the expected calibration error in 15 bins), iou of areas (labels of more than one dimension; macro), else
// auc of at most 32 classes. It waits for the device only for auc.
func (m *Meters) Classes(logits, labels *tensor.Tensor) {
	if m == nil {
		return
	}
	first := m.right == nil || m.right.n == 0
	m.Accuracy(logits, labels)
	logits, classes := logits.Detach(), logits.Dim(-1)
	if classes > 5 {
		count(&m.top5, CorrectTopK(logits, labels, 5), labels.Size())
	}
	if classes > mostClasses {
		return
	}
	if m.confusion == nil || first && !m.confusion.takes(logits) {
		m.confusion, m.calibration = NewConfusion(logits.Env(), classes), NewCalibration(logits.Env(), 15)
	}
	m.confusion.Add(logits, labels)
	probabilities := logits.Softmax(-1)
	m.calibration.Add(probabilities, labels)
	m.areas = labels.Rank() > 1
	if !m.areas && classes <= mostRanked {
		if m.ranking == nil {
			m.ranking = &ROC{}
		}
		m.ranking.Add(probabilities, labels)
	}
}

// Accuracy measures of logits [..., classes] and labels [...] accuracy alone, by one pass. It waits for nothing.
func (m *Meters) Accuracy(logits, labels *tensor.Tensor) {
	if m != nil {
		count(&m.right, Correct(logits.Detach(), labels), labels.Size())
	}
}

// count adds n of so many.
func count(mean **Mean, n *tensor.Tensor, of int) {
	if *mean == nil {
		*mean = &Mean{}
	}
	(*mean).AddSum(n, of)
}

// Numbers measures predictions against targets of their shape: mae, mse, rmse and r2. It waits for nothing.
func (m *Meters) Numbers(predictions, targets *tensor.Tensor) {
	if m == nil {
		return
	}
	if m.numbers == nil {
		m.numbers = &Regression{}
	}
	m.numbers.Add(predictions, targets)
}

// Perplexity measures a mean cross entropy over n tokens. It waits for nothing.
func (m *Meters) Perplexity(loss *tensor.Tensor, n int) {
	if m == nil {
		return
	}
	if m.perplexity == nil {
		m.perplexity = &Perplexity{}
	}
	m.perplexity.Add(loss, n)
}

// Mean takes in a figure of one's own, the mean over n samples. It waits for nothing.
func (m *Meters) Mean(name string, v *tensor.Tensor, n int) {
	if m == nil {
		return
	}
	if m.means == nil {
		m.means = map[string]*Mean{}
	}
	if m.means[name] == nil {
		m.means[name] = &Mean{}
	}
	m.means[name].Add(v, n)
}

// Values are the figures so far, but for those that are no finite number. It waits for the device.
func (m *Meters) Values() map[string]float64 {
	out := map[string]float64{}
	if m == nil {
		return out
	}
	put := func(name string, v float64) {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[name] = v
		}
	}
	for name, mean := range m.means {
		put(name, mean.Value())
	}
	if m.right != nil {
		put("accuracy", m.right.Value())
	}
	if m.top5 != nil {
		put("top5", m.top5.Value())
	}
	if m.confusion != nil {
		a := m.confusion.Average(Macro)
		put("precision", a.Precision)
		put("recall", a.Recall)
		put("f1", a.F1)
		put("ece", m.calibration.Error())
		if m.areas {
			put("iou", a.IoU)
		}
	}
	if m.ranking != nil {
		put("auc", m.ranking.AUC(Macro))
	}
	if m.numbers != nil {
		e := m.numbers.Value()
		put("mae", e.MAE)
		put("mse", e.MSE)
		put("rmse", e.RMSE)
		put("r2", e.R2)
	}
	if m.perplexity != nil {
		put("perplexity", m.perplexity.Value())
	}
	return out
}

// Reset empties the figures, which keep their memory: what is scored again and again takes no more than once. Copies share it.
func (m *Meters) Reset() {
	if m == nil {
		return
	}
	for _, mean := range m.means {
		mean.Clear()
	}
	for _, mean := range []*Mean{m.right, m.top5} {
		if mean != nil {
			mean.Clear()
		}
	}
	if m.perplexity != nil {
		m.perplexity.Clear()
	}
	if m.numbers != nil {
		m.numbers.clear()
	}
	if m.confusion != nil {
		m.confusion.clear()
		m.calibration.clear()
	}
	if m.ranking != nil {
		*m.ranking = ROC{}
	}
}

// String tells how many samples of classes and values of numbers were counted; only Values reads the figures.
func (m *Meters) String() string {
	classes, numbers := 0, 0
	if m != nil && m.right != nil {
		classes = m.right.Count()
	}
	if m != nil && m.numbers != nil {
		numbers = m.numbers.Count()
	}
	return fmt.Sprintf("figures of %d labels and %d numbers", classes, numbers)
}
