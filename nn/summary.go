package nn

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/tensor"
)

// Table is what [Summary] returns: the layers of a model in the order in which they ran, then tensors of its own.
type Table struct{ Rows []Row }

// Row is one use of a layer, or a parameter that belongs to no layer of this package.
type Row struct {
	Path      string
	Kind      string // "Linear"
	Output    []int  // shape; nil for a parameter
	Params    int    // elements of parameters that no row before has
	Bytes     int64  // of these parameters
	OutBytes  int64  // of the output
	Products  int    // multiply-adds
	Trainable int    // of Params, those that are not frozen
}

// Summary runs a model once on zeros of the given shape, on the model's device, in evaluation and without recording, and
// tabulates its layers. Operations that are not layers, such as x.ReLU(), have no row.
func Summary(model Module, shape ...int) Table {
	w := walk("nn.Summary", model)
	s := &survey{paths: w.modules, counted: map[*tensor.Tensor]bool{}, goroutine: callsite.Goroutine()}
	s.forward(model, shape, w.entries)
	for _, e := range w.each(isParameter) {
		if !s.counted[e.t] {
			r := Row{Path: e.path, Kind: "parameter"}
			s.own(&r, e.t)
			s.rows = append(s.rows, r)
		}
	}
	return Table{s.rows}
}

// survey observes what layers compute. Layers are known by identity, so that other models are not seen.
type survey struct {
	paths     map[any]string
	root      atomic.Pointer[device.Range] // of the one run that counts
	goroutine uint64                       // that runs the model

	mu      sync.Mutex
	rows    []Row
	counted map[*tensor.Tensor]bool
}

func (s *survey) forward(model Module, shape []int, entries []entry) {
	var env *tensor.Env
	if len(entries) > 0 {
		env = entries[0].t.Env()
	} else {
		env = tensor.Best() // it may have to be opened
	}
	// A scope, and not Do: a summary must not change the random numbers of the program.
	inner, scope := env.NoGrad().Eval().Scope()
	defer scope.End()
	all := devicesOf(entries)
	if len(all) == 0 {
		all = []*tensor.Device{env.Device()}
	}
	for _, d := range all {
		defer d.Observe(s.see, device.KindRange)()
	}
	x, end := inner.Zeros(shape...).Enter("nn.Summary", s)
	end(model.Forward(x))
}

// devicesOf are those of a model.
func devicesOf(entries []entry) (all []*tensor.Device) {
	for _, e := range entries {
		if d := e.t.Env().Device(); !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

// see is the observer. A layer whose input was not made of the summary's own is known by the goroutine.
func (s *survey) see(e *device.Event) {
	if e.Range.Of == s {
		s.root.Store(e.Range)
		return
	}
	c, ok := e.Range.Of.(*call)
	if !ok || !e.End || !c.own || c.y == nil || !e.Range.Within(s.root.Load()) && e.Goroutine() != s.goroutine {
		return
	}
	path, ok := s.paths[c.key]
	if _, wrap := c.layer.(wrapped); !ok || wrap {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := Row{Path: path, Kind: Kind(c.layer), Output: c.y.Shape(), OutBytes: c.y.Bytes()}
	if m, ok := c.layer.(multiplier); ok {
		r.Products = m.products(c.x, c.y)
	}
	for _, e := range walk("nn.Summary", c.layer).each(isParameter) {
		if !s.counted[e.t] {
			s.own(&r, e.t)
		}
	}
	s.rows = append(s.rows, r)
}

// own counts a parameter in a row.
func (s *survey) own(r *Row, p *tensor.Tensor) {
	s.counted[p] = true
	r.Params += p.Size()
	r.Bytes += p.Bytes()
	if !p.Frozen() {
		r.Trainable += p.Size()
	}
}

// Kind is the name of a layer's type: "Linear", or "main.Block" of another package.
func Kind(layer any) string {
	name := fmt.Sprintf("%T", layer)
	return strings.TrimPrefix(name[strings.LastIndexByte(name, '*')+1:], "nn.")
}

// Total adds the rows up.
func (t Table) Total() Row {
	sum := Row{Path: "total"}
	for _, r := range t.Rows {
		sum.Params += r.Params
		sum.Bytes += r.Bytes
		sum.OutBytes += r.OutBytes
		sum.Products += r.Products
		sum.Trainable += r.Trainable
	}
	return sum
}

// String is the table as text, at most 100 columns wide, with a line of totals.
func (t Table) String() string {
	out := render.Table{
		Header: []string{"layer", "kind", "output", "parameters", "bytes", "output bytes", "multiply-adds"},
		Right:  []bool{false, false, false, true, true, true, true},
	}
	for _, r := range t.Rows {
		out.Rows = append(out.Rows, r.cells())
	}
	total := t.Total()
	out.Rows = append(out.Rows, total.cells())
	text := out.String(100)
	if frozen := total.Params - total.Trainable; frozen > 0 {
		text += fmt.Sprintf("%s parameters are frozen\n", render.Count(int64(frozen)))
	}
	return text
}

func (r Row) cells() []string {
	shape := ""
	if r.Output != nil {
		shape = strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Output), " ", "×"), "[]")
	}
	return []string{r.Path, r.Kind, shape, render.Count(int64(r.Params)), render.Bytes(r.Bytes), render.Bytes(r.OutBytes), render.Count(int64(r.Products))}
}
