package conform

import (
	"fmt"
	"math"

	"github.com/warpline-ml/warpline/internal/ir"
	"github.com/warpline-ml/warpline/internal/ref"
)

// Worst is the element of a case that is farthest off, relative to what is allowed.
type Worst struct {
	Result, Index int     // element in row-major order
	Got, Want     float64 // of integers beyond 2⁵³, rounded
	Allowed       float64 // error
}

// excess is the error relative to what is allowed: above 1 is too much.
func (w *Worst) excess() float64 {
	err := math.Abs(w.Got - w.Want)
	switch {
	case err == 0 || w.Got != w.Got && w.Want != w.Want || w.Got == w.Want:
		return 0
	case !(err <= math.MaxFloat64) || w.Allowed == 0:
		return math.Inf(1)
	}
	return err / w.Allowed
}

// String says what is wrong.
func (w *Worst) String() string {
	return fmt.Sprintf("element %d of result %d is %v, want %v, allowed error %.3g", w.Index, w.Result, w.Got, w.Want, w.Allowed)
}

// compare finds the worst element of results against the reference.
func (c *Case) compare(got []ref.Array, row Row) (worst Worst, err error) {
	want, magnitude, err := c.Want()
	if err != nil {
		return worst, fmt.Errorf("the reference refuses the case: %w", err)
	}
	top, n := -1.0, length(&c.Op)
	for i := range got {
		l := row.limit(got[i].Type.DType, n)
		for j := range got[i].Data {
			w := Worst{Result: i, Index: j, Got: got[i].Data[j], Want: want[i].Data[j]}
			if want[i].Int != nil {
				if got[i].Int[j] == want[i].Int[j] {
					w.Got = w.Want
				} else if w.Got == w.Want {
					w.Got = math.Inf(1) // they differ beyond what float64 shows
				}
				if row.Near {
					w.Allowed = magnitude[i][j]
				}
			} else {
				w.Allowed = l.allowed(w.Want, magnitude[i][j])
				w.settle(got[i].Type, magnitude[i][j])
			}
			if e := w.excess(); e > top {
				top, worst = e, w
			}
		}
	}
	return worst, nil
}

// settle replaces the wanted number by what its dtype holds where that has no error to speak of: infinities, and what
// was out of the range on the way.
func (w *Worst) settle(t *ir.Type, magnitude float64) {
	if w.Got == w.Want || w.Got != w.Got && w.Want != w.Want {
		return
	}
	wide := ir.Wide(t.DType)
	finite := !math.IsInf(w.Want, 0) && w.Want == w.Want
	switch {
	case finite && magnitude > wide.Max()/4 && (math.IsInf(w.Got, 0) || w.Got != w.Got):
		w.Got = w.Want // a step overflowed
	case finite && math.IsInf(w.Got, 0):
		if far := round(t, w.Want+math.Copysign(w.Allowed, w.Want)); far == w.Got {
			w.Got = w.Want
		}
	case w.Allowed == 0 || math.Abs(w.Want) > t.DType.Max():
		if near := round(t, w.Want); near == w.Got {
			w.Want = near
		}
	}
}

// round converts a number to a dtype and back.
func round(t *ir.Type, v float64) float64 {
	one := ir.Dense(t.DType)
	b := make([]byte, t.DType.Size())
	ref.Encode(b, one, ref.Floats(one, v))
	return ref.Decode(b, one).Data[0]
}
