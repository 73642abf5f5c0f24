package prof

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/render"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// Statistics looks at the values of a model in a step: what its modules give, the gradients of that, the parameters and theirs.
//
//	s := prof.NewStatistics(model)
//	…
//	if step%100 == 0 {
//		s.Begin()
//	}
//	nn.CrossEntropy(model.Forward(b.X), b.Y).Backward()
//	if look := s.End(1); look != nil {
//		fmt.Print(look.Values())
//	}
//	opt.Step()
//
// A look adds four small reductions for each of these values to the device's work of the step, keeps none of them, and changes
// no bit of the step. A captured step cannot be looked at. A Statistics is for one goroutine at a time.
type Statistics struct {
	model any
	look  *Look  // under way
	stop  func() // of the observer
}

// NewStatistics returns what looks at a model. A step that it does not look at costs nothing.
func NewStatistics(model any) *Statistics { return &Statistics{model: model} }

// Values are what a look found of a tensor, or of all that a module gave in the step. Those of no elements are all 0.
type Values struct {
	Elements int     `json:"elements"`
	RMS      float64 `json:"rms"`   // the root of the mean of squares; NaN or infinite where an element is, or its square beyond float32
	Max      float64 `json:"max"`   // the largest absolute value
	Zeros    float64 `json:"zeros"` // the share of elements that are 0
}

// MarshalJSON writes null for what JSON has no number for.
func (v Values) MarshalJSON() ([]byte, error) {
	number := func(f float64) *float64 {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil
		}
		return &f
	}
	return json.Marshal(struct {
		Elements int      `json:"elements"`
		RMS      *float64 `json:"rms"`
		Max      *float64 `json:"max"`
		Zeros    *float64 `json:"zeros"`
	}{v.Elements, number(v.RMS), number(v.Max), number(v.Zeros)})
}

// ModuleValues are those of a module, or of a parameter that belongs to none of nn's.
type ModuleValues struct {
	Path            string  `json:"path"`
	Kind            string  `json:"kind"`                       // "Linear"; "parameter"
	Output          *Values `json:"output,omitempty"`           // what it gives
	Gradient        *Values `json:"gradient,omitempty"`         // of that; nil where Backward does not come by
	Weights         *Values `json:"weights,omitempty"`          // its own parameters
	WeightGradients *Values `json:"weight_gradients,omitempty"` // of these; nil where none has one
	Units           int     `json:"units,omitempty"`            // rows of a Linear's or Conv2d's weight
	Idle            []int   `json:"idle,omitempty"`             // the units whose weights all have a gradient of 0, as those have whose ReLU gives 0 for the whole batch
}

// Begin looks at what the model does from here on. It is for a step that has no gradients yet.
func (s *Statistics) Begin() {
	if s.look != nil {
		tensor.Raise("Statistics.Begin", "call End behind Backward", "a look is under way")
	}
	l := &Look{of: map[string]int{}}
	s.look = l
	s.stop = nn.OnForward(s.model, l.output)
}

// End ends the look between Backward and the update, and returns what is on its way to the host; nil if no look is under way.
// Gradients are told divided by scale: what the loss was multiplied by, 1 without a LossScaler.
func (s *Statistics) End(scale float64) *Look {
	l := s.look
	if l == nil {
		return nil
	}
	s.end()
	l.scale = scale
	l.parameters(s.model)
	l.send()
	return l
}

// Drop forgets a look that is under way, of a step that failed.
func (s *Statistics) Drop() {
	if s.look != nil {
		s.look.Drop()
		s.end()
	}
}

func (s *Statistics) end() {
	s.stop()
	s.look, s.stop = nil, nil
}

// Look is what a step's values come to, on its way to the host. It has memory of the device until Values or Drop.
type Look struct {
	kept []*tensor.Tensor

	rows     []ModuleValues
	of       map[string]int // their numbers by path and kind
	readings []reading
	sent     []*tensor.Tensor // figures of the readings, by device
	last     []*tensor.Pending
	where    [][]int // which readings each of sent has, in order
	scale    float64
}

// keep is t beyond its scope.
func (l *Look) keep(t *tensor.Tensor) *tensor.Tensor {
	t = t.Keep()
	l.kept = append(l.kept, t)
	return t
}

// Drop lets go of figures that nobody asks for.
func (l *Look) Drop() {
	for _, t := range l.kept {
		t.Release()
	}
	l.kept = nil
}

// reading is of a tensor, of which some values are a part.
type reading struct {
	row, field int
	elements   int
	figures    *tensor.Tensor // f32[3]: sum of squares, largest absolute value, zeros; f32[units] ofUnits
}

// The fields of a row.
const (
	ofOutput = iota
	ofGradient
	ofWeights
	ofWeightGradients
	ofUnits // the largest gradient of each, in place of figures
	fields  = ofUnits
)

// row is the number of a module's row.
func (l *Look) row(path, kind string) int {
	key := path + "\x00" + kind
	i, ok := l.of[key]
	if !ok {
		i = len(l.rows)
		l.of[key] = i
		l.rows = append(l.rows, ModuleValues{Path: path, Kind: kind})
	}
	return i
}

// output looks at what a module gives, and asks for its gradient.
func (l *Look) output(path string, layer any, y *tensor.Tensor) {
	if !y.DType().IsFloat() {
		return
	}
	i := l.row(path, nn.Kind(layer))
	if !y.Env().Recomputing() {
		l.add(i, ofOutput, y)
	}
	if y.Recorded() {
		y.OnGrad(func(g *tensor.Tensor) *tensor.Tensor {
			l.add(i, ofGradient, g)
			return nil
		})
	}
}

// parameters looks at the parameters and their gradients, and for units without any.
func (l *Look) parameters(model any) {
	for path, p := range nn.Params(model) {
		i := l.owner(path)
		l.add(i, ofWeights, p)
		if g := p.Grad(); g != nil {
			l.add(i, ofWeightGradients, g)
			l.idle(i, g)
		}
	}
}

// owner is the row of the module that a parameter belongs to, or one of its own.
func (l *Look) owner(path string) int {
	module := path[:max(0, strings.LastIndexByte(path, '.'))]
	for i := range l.rows {
		if r := &l.rows[i]; r.Path == module && r.Kind != "parameter" {
			return i
		}
	}
	return l.row(path, "parameter")
}

// idle asks which units of a layer have no gradient at all.
func (l *Look) idle(i int, g *tensor.Tensor) {
	if r := &l.rows[i]; (r.Kind == "Linear" || r.Kind == "Conv2d") && g.Rank() > 1 && r.Units == 0 {
		r.Units = g.Shape()[0]
		l.readings = append(l.readings, reading{row: i, field: ofUnits, figures: l.reduced(g, func(x *tensor.Tensor) *tensor.Tensor {
			return x.Abs().Reshape(r.Units, -1).Max(1)
		})})
	}
}

// add asks for the figures of a tensor.
func (l *Look) add(row, field int, t *tensor.Tensor) {
	p := reading{row: row, field: field, elements: t.Size()}
	if p.elements > 0 {
		p.figures = l.reduced(t, func(x *tensor.Tensor) *tensor.Tensor {
			x = x.Reshape(-1)
			zeros := x.Eq(x.Env().FullOf(dtype.F32, 0)).Cast(dtype.F32)
			return tensor.Stack(0, x.Mul(x).Sum(), x.Abs().Max(), zeros.Sum())
		})
	}
	l.readings = append(l.readings, p)
}

// reduced is what f makes of a tensor in float32, which outlives the step; nothing else stays.
func (l *Look) reduced(t *tensor.Tensor, f func(x *tensor.Tensor) *tensor.Tensor) *tensor.Tensor {
	env, scope := t.Env().NoGrad().Autocast(dtype.F32).Scope()
	defer scope.End()
	return l.keep(f(t.In(env).Cast(dtype.F32)))
}

// send puts the figures of each device together and asks for them.
func (l *Look) send() {
	byDevice := map[*tensor.Device][]int{}
	var order []*tensor.Device
	for i := range l.readings {
		if f := l.readings[i].figures; f != nil {
			d := f.Env().Device()
			if byDevice[d] == nil {
				order = append(order, d)
			}
			byDevice[d] = append(byDevice[d], i)
		}
	}
	for _, d := range order {
		var all []*tensor.Tensor
		for _, i := range byDevice[d] {
			all = append(all, l.readings[i].figures)
		}
		env, scope := all[0].Env().NoGrad().Scope()
		v := l.keep(tensor.Cat(0, in(env, all)...))
		l.sent, l.where, l.last = append(l.sent, v), append(l.where, byDevice[d]), append(l.last, v.Slice(0, 0, 1).Reshape().Later())
		scope.End()
	}
}

func in(env *tensor.Env, ts []*tensor.Tensor) (out []*tensor.Tensor) {
	for _, t := range ts {
		out = append(out, t.In(env))
	}
	return out
}

// Ready tells whether Values need not wait.
func (l *Look) Ready() bool {
	return !slices.ContainsFunc(l.last, func(p *tensor.Pending) bool { return !p.Ready() })
}

// Values are what was found, in the order in which the modules first ran; parameters of no module come last. It waits for the
// device unless the look is Ready.
func (l *Look) Values() ModuleTable {
	var sums = make([][fields]total, len(l.rows))
	for s, v := range l.sent {
		figures := v.Floats()
		for _, i := range l.where[s] {
			p := &l.readings[i]
			if p.field == ofUnits {
				l.rows[p.row].Idle = zeros(figures[:l.rows[p.row].Units])
				figures = figures[l.rows[p.row].Units:]
				continue
			}
			sums[p.row][p.field].add(p.elements, figures[:3])
			figures = figures[3:]
		}
	}
	l.sent, l.readings = nil, nil
	l.Drop()
	for i := range sums {
		r, of := &l.rows[i], &sums[i]
		for field, at := range []**Values{&r.Output, &r.Gradient, &r.Weights, &r.WeightGradients} {
			scale := 1.0
			if field == ofGradient || field == ofWeightGradients {
				scale = l.scale
			}
			if of[field].parts > 0 {
				*at = of[field].values(scale)
			}
		}
	}
	return l.rows
}

// zeros are the places of the zeros.
func zeros(v []float64) (at []int) {
	for i, x := range v {
		if x == 0 {
			at = append(at, i)
		}
	}
	return at
}

// total adds up figures.
type total struct {
	parts, elements     int
	squares, max, zeros float64
}

func (t *total) add(elements int, figures []float64) {
	t.parts++
	t.elements += elements
	t.squares += figures[0]
	t.max = math.Max(t.max, figures[1]) // NaN stays
	t.zeros += figures[2]
}

func (t *total) values(scale float64) *Values {
	n := float64(max(1, t.elements))
	return &Values{t.elements, math.Sqrt(t.squares/n) / scale, t.max / scale, t.zeros / n}
}

// ModuleTable is what a look found.
type ModuleTable []ModuleValues

// WriteText shows a row for each module, in at most width columns.
func (m ModuleTable) WriteText(w io.Writer, width int) error {
	t := render.Table{
		Header: []string{"module", "kind", "output", "zeros", "gradient", "weights", "gradient", "ratio", "idle"},
		Right:  []bool{false, false, true, true, true, true, true, true, true}, Spare: []int{0},
	}
	for i := range m {
		t.Rows = append(t.Rows, m[i].cells())
	}
	_, err := io.WriteString(w, t.String(width))
	return err
}

// String is the table as text, at most 100 columns wide. Outputs, weights and gradients are told by the root of their mean square.
func (m ModuleTable) String() string {
	var b strings.Builder
	_ = m.WriteText(&b, 100) // a Builder takes everything
	return b.String()
}

func (r *ModuleValues) cells() []string {
	rms := func(v *Values) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.3g", v.RMS)
	}
	none, ratio, idle := "", "", ""
	if r.Output != nil {
		none = render.Percent(r.Output.Zeros)
	}
	if r.WeightGradients != nil && r.Weights.RMS > 0 {
		ratio = fmt.Sprintf("%.2g", r.WeightGradients.RMS/r.Weights.RMS)
	}
	if r.Units > 0 {
		idle = fmt.Sprintf("%d of %d", len(r.Idle), r.Units)
	}
	return []string{r.Path, r.Kind, rms(r.Output), none, rms(r.Gradient), rms(r.Weights), rms(r.WeightGradients), ratio, idle}
}
