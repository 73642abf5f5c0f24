package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/tensor"
)

// Case is one call: an op of the table, its operands and numbers, and what came of it. It travels as JSON.
type Case struct {
	ID    int       `json:"id"`
	Op    string    `json:"op"`
	In    []Operand `json:"in"`
	Attrs Attrs     `json:"attrs"`
	Order int       `json:"order"` // of the derivatives that are compared: 0, 1 or 2
	Got   Result    `json:"got"`
}

// Attrs are the numbers of a call; each op reads those it needs.
type Attrs struct {
	P     num    `json:"p,omitempty"`
	Q     num    `json:"q,omitempty"`
	Axis  int    `json:"axis,omitempty"`
	Axes  []int  `json:"axes,omitempty"`
	Shape []int  `json:"shape,omitempty"`
	N     []int  `json:"n,omitempty"`
	Flag  bool   `json:"flag,omitempty"`
	Word  string `json:"word,omitempty"`
}

// Operand is a value and the way it lies in memory.
type Operand struct {
	Value
	Layout string `json:"layout"`
	Fixed  bool   `json:"fixed,omitempty"` // floating, but without a gradient
}

// Value is the elements of a tensor in row-major order.
type Value struct {
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Data  []num  `json:"data"`
}

// Result is what a call gave: values, the gradients of their weighted sum with respect to the floating operands, and the
// gradients of the weighted sum of these. Or the error, and at which order it came.
type Result struct {
	Out    []Value `json:"out"`
	Grads  []Value `json:"grads,omitempty"`
	Second []Value `json:"second,omitempty"`
	Err    string  `json:"err,omitempty"`
	Failed int     `json:"failed,omitempty"` // order at which Err came
}

// num is a number whose JSON form knows NaN and the infinities.
type num float64

// MarshalJSON writes the shortest form that gives the number again.
func (n num) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte(`"` + strconv.FormatFloat(f, 'g', -1, 64) + `"`), nil
	}
	if f == 0 && math.Signbit(f) {
		return []byte("-0.0"), nil // Python reads -0 as an integer
	}
	return strconv.AppendFloat(nil, f, 'g', -1, 64), nil
}

// UnmarshalJSON reads a number, or NaN, Infinity and -Infinity as a string.
func (n *num) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		s = string(b)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return fmt.Errorf("%s is no number", b)
	}
	*n = num(f)
	return nil
}

// layouts are the ways an operand may lie: row-major; its last two dimensions swapped; every second element of the last
// dimension; behind an offset; one row repeated by stride 0.
var layouts = [...]string{"dense", "transposed", "stepped", "offset", "expanded"}

// lay makes t, which is row-major, lie otherwise. The values stay.
func lay(t *tensor.Tensor, layout string) *tensor.Tensor {
	switch layout {
	case "transposed":
		return t.Transpose(-1, -2).Contiguous().Transpose(-1, -2)
	case "stepped":
		return tensor.Stack(-1, t, t).Flatten(t.Rank()-1).SliceStep(-1, 0, 2*t.Dim(-1), 2)
	case "offset":
		return tensor.Cat(0, t.Slice(0, 0, 1), t).Slice(0, 1, t.Dim(0)+1)
	case "expanded":
		return t.Slice(0, 0, 1).Expand(t.Shape()...)
	}
	return t
}

// build makes an operand on a device.
func (o *Operand) build(env *tensor.Env) *tensor.Tensor {
	dt, err := dtype.Parse(o.DType)
	if err != nil {
		panic(err)
	}
	data := make([]float64, len(o.Data))
	for i, v := range o.Data {
		data[i] = float64(v)
	}
	return lay(tensor.From(env, data, o.Shape...).Cast(dt), o.Layout).Detach()
}

// valueOf reads a tensor.
func valueOf(t *tensor.Tensor) Value {
	v := Value{DType: t.DType().String(), Shape: append([]int{}, t.Shape()...), Data: []num{}}
	for _, f := range t.Floats() {
		v.Data = append(v.Data, num(f))
	}
	return v
}

// learns tells whether an operand gets a gradient.
func (o *Operand) learns() bool {
	dt, _ := dtype.Parse(o.DType)
	return dt.IsFloat() && !o.Fixed
}

// Run computes a case on a device.
func (c *Case) Run(env *tensor.Env) (r Result) {
	stage := 0
	_, err := env.Try(func(env *tensor.Env) *tensor.Tensor {
		var in, leaves []*tensor.Tensor
		for i := range c.In {
			t := c.In[i].build(env)
			if c.Order > 0 && c.In[i].learns() {
				t = t.RequireGrad()
				leaves = append(leaves, t)
			}
			in = append(in, t)
		}
		out := table[c.Op].call(in, &c.Attrs)
		for _, t := range out {
			r.Out = append(r.Out, valueOf(t))
		}
		stage = 1
		sum := weighted(out)
		if c.Order == 0 || sum == nil || len(leaves) == 0 {
			return nil
		}
		grads := tensor.GradGraph(sum, leaves...)
		for _, g := range grads {
			r.Grads = append(r.Grads, valueOf(g))
		}
		stage = 2
		if sum = weighted(grads); c.Order < 2 || sum == nil {
			return nil
		}
		for _, g := range tensor.Grad(sum, leaves...) {
			r.Second = append(r.Second, valueOf(g))
		}
		return nil
	})
	if err != nil {
		r.Err, r.Failed = err.Error(), stage
	}
	return r
}

// weighted is the sum of the floating values among ts, each element with a weight of its own, in float64; nil if it hangs
// on no leaf.
func weighted(ts []*tensor.Tensor) (sum *tensor.Tensor) {
	for k, t := range ts {
		if !t.DType().IsFloat() {
			continue
		}
		w := make([]float64, t.Size())
		for i := range w {
			w[i] = weight(k, i)
		}
		s := t.Cast(dtype.F64).Mul(tensor.From(t.Env(), w, t.Shape()...)).Sum()
		if sum == nil {
			sum = s
		} else {
			sum = sum.Add(s)
		}
	}
	if sum == nil || !sum.Recorded() {
		return nil
	}
	return sum
}

// weight is that of element i of value k: a multiple of 1/8, which every dtype has.
func weight(k, i int) float64 { return float64((5*i+3*k)%11+2) / 8 }
