package table

import (
	"fmt"
	"math"
	"slices"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/advice"
)

// Task is what is learned of a target.
type Task string

// The tasks.
const (
	Classification Task = "classification" // which of the target's values: Y is int64
	Regression     Task = "regression"     // the target's number: Y is float32 [1], normalised as numbers of inputs are
)

// Unknown is what to do about a text that the training rows do not have.
type Unknown string

// The ways.
const (
	Refuse Unknown = ""      // an error
	Other  Unknown = "other" // an input of its own, 0 in training
)

// Encoding says what to make of a table.
type Encoding struct {
	Target  string
	Task    Task     // empty: regression of numbers, classification of texts
	Drop    []string // columns that are no inputs, such as an identifier
	Unknown Unknown
	Most    int // texts of a column; 0: 1000. More are an identifier, or free text, and an error
}

// Input is how a column becomes inputs: a number is normalised, (x - Mean) / Deviation; a text is one input for each of Texts, 1 for
// the one that it is. A missing value has an input of its own where the table has any, and a number is the mean then.
type Input struct {
	Column    string   `json:"column"`
	Kind      Kind     `json:"kind"`
	Mean      float64  `json:"mean,omitempty"`
	Deviation float64  `json:"deviation,omitempty"` // of all training rows, not of a sample; 1 where all are equal
	Texts     []string `json:"texts,omitempty"`     // sorted
	Missing   bool     `json:"missing,omitempty"`   // the table has missing values, among the rows learned from or not

	places map[string]int
}

// String tells the column's name, its kind and, of a category, how many texts training had.
func (in *Input) String() string {
	if in.Kind == Text {
		return fmt.Sprintf("%s (%v of %d texts)", in.Column, in.Kind, len(in.Texts))
	}
	return fmt.Sprintf("%s (%v)", in.Column, in.Kind)
}

// Encoder turns rows into inputs and targets. As JSON it keeps all that it has learned; [Encoder.Check] follows reading. It may be
// used by several goroutines at once.
type Encoder struct {
	Inputs  []*Input `json:"inputs"`
	Target  *Input   `json:"target"`
	Task    Task     `json:"task"`
	Unknown Unknown  `json:"unknown,omitempty"`
}

// Fit learns an encoder from rows of a table. A target that is not there, has missing values or is always the same is an error.
func Fit(t *Table, rows []int, c Encoding) (*Encoder, error) {
	if len(rows) == 0 {
		return nil, advice.Failf("give at least two rows", "%s: no rows to learn from", t.name)
	}
	if c.Most == 0 {
		c.Most = 1000
	}
	e := &Encoder{Task: c.Task, Unknown: c.Unknown}
	if err := e.fitTarget(t, rows, c); err != nil {
		return nil, err
	}
	for _, name := range c.Drop {
		if _, err := t.Column(name); err != nil {
			return nil, err
		}
	}
	for _, col := range t.columns {
		if col.Name == c.Target || slices.Contains(c.Drop, col.Name) {
			continue
		}
		in, err := fit(t, col, rows, c.Most)
		if err != nil {
			return nil, err
		}
		e.Inputs = append(e.Inputs, in)
	}
	return e, e.Check()
}

func (e *Encoder) fitTarget(t *Table, rows []int, c Encoding) error {
	col, err := t.Column(c.Target)
	if err != nil {
		return err
	}
	if e.Task == "" {
		e.Task = map[Kind]Task{Number: Regression, Text: Classification}[col.Kind]
	}
	for _, i := range rows {
		if col.IsMissing(i) {
			return advice.Failf("leave such rows out, as Present does", "%s: the target is missing", t.at(i, col.Name))
		}
	}
	switch {
	case e.Task == Regression && col.Kind != Number:
		return advice.Failf("classify it, or correct the cells that are no numbers", "%s: the target %q has texts, which are no regression's", t.name, col.Name)
	case e.Task == Classification && col.Kind == Number:
		e.Target = &Input{Column: col.Name, Kind: Text, Texts: col.distinct(rows)}
	default:
		if e.Target, err = fit(t, col, rows, c.Most); err != nil {
			return err
		}
	}
	first := col.Text(rows[0])
	if !slices.ContainsFunc(rows, func(i int) bool { return col.Text(i) != first }) {
		return advice.Failf("choose another target", "%s: the target %q is %q in all %d rows; there is nothing to learn", t.name, col.Name, first, len(rows))
	}
	e.Target.Missing = false // in rows that are left out
	if len(e.Target.Texts) > c.Most {
		return advice.Failf("choose another target, or allow more by Most", "%s: the target %q has %d classes, more than %d", t.name, col.Name, len(e.Target.Texts), c.Most)
	}
	return nil
}

// fit learns a column.
func fit(t *Table, col *Column, rows []int, most int) (*Input, error) {
	in := &Input{Column: col.Name, Kind: col.Kind}
	for i := range t.Len() { // where the only one is held out, it is to be scored
		in.Missing = in.Missing || col.IsMissing(i)
	}
	if col.Kind == Text {
		if in.Texts = col.distinct(rows); len(in.Texts) > most {
			return nil, advice.Failf("drop the column, or allow more by Most", "%s: column %q has %d different texts in %d rows, more than %d; it may be a name, an identifier or free text", t.name, col.Name, len(in.Texts), len(rows), most)
		}
		return in, nil
	}
	n, mean, squares := 0.0, 0.0, 0.0
	for _, i := range rows {
		if v := col.numbers[i]; !math.IsNaN(v) { // Welford's algorithm
			n++
			d := v - mean
			mean += d / n
			squares += d * (v - mean)
		}
	}
	in.Mean, in.Deviation = mean, 1
	if n > 0 && squares > 0 {
		in.Deviation = math.Sqrt(squares / n)
	}
	if math.IsInf(in.Deviation, 0) || math.IsNaN(in.Deviation) || math.IsInf(mean, 0) || math.IsNaN(mean) {
		return nil, advice.Failf("take its logarithm, or drop it", "%s: the numbers of column %q are too large to normalise", t.name, col.Name)
	}
	return in, nil
}

// Check makes an encoder that was read ready for use, and refuses one that cannot be.
func (e *Encoder) Check() error {
	bad := func(format string, args ...any) error {
		return advice.Failf("give an encoder that Fit has made", "an encoder of a table: "+format, args...)
	}
	if e.Target == nil || e.Task != Classification && e.Task != Regression || (e.Task == Classification) != (e.Target.Kind == Text) {
		return bad("the task %q does not go with the target", e.Task)
	}
	if e.Unknown != Refuse && e.Unknown != Other {
		return bad("unknown texts are to be %q", e.Unknown)
	}
	for _, in := range append([]*Input{e.Target}, e.Inputs...) {
		switch {
		case in == nil || in.Kind != Number && in.Kind != Text:
			return bad("a column is of no kind")
		case in.Kind == Number && (!(in.Deviation > 0) || math.IsInf(in.Deviation, 0) || math.IsNaN(in.Mean) || math.IsInf(in.Mean, 0)):
			return bad("column %q is normalised by %v and %v", in.Column, in.Mean, in.Deviation)
		}
		in.places = map[string]int{}
		for i, s := range in.Texts {
			in.places[s] = i
		}
	}
	if e.Width() == 0 {
		return bad("no column is an input")
	}
	return nil
}

// width is how many inputs a column makes.
func (in *Input) width(u Unknown) int {
	n := 1
	if in.Kind == Text {
		n = len(in.Texts)
		if u == Other {
			n++
		}
	}
	if in.Missing {
		n++
	}
	return n
}

// Width is the number of inputs of a row.
func (e *Encoder) Width() (n int) {
	for _, in := range e.Inputs {
		n += in.width(e.Unknown)
	}
	return n
}

// Names are what each input stands for: "age", "city=Bonn", "age missing".
func (e *Encoder) Names() (names []string) {
	for _, in := range e.Inputs {
		if in.Kind == Number {
			names = append(names, in.Column)
		}
		for _, s := range in.Texts {
			names = append(names, in.Column+"="+s)
		}
		if in.Kind == Text && e.Unknown == Other {
			names = append(names, in.Column+" other")
		}
		if in.Missing {
			names = append(names, in.Column+" missing")
		}
	}
	return names
}

// Classes are the target's values, in the order of the labels; nil for regression.
func (e *Encoder) Classes() []string { return e.Target.Texts }

// Value is the target's number of what a model of regression gives.
func (e *Encoder) Value(y float64) float64 { return e.Target.Mean + y*e.Target.Deviation }

// put writes the inputs of a row's value to x, which is 0.
func (in *Input) put(x []float32, t *Table, col *Column, row int, u Unknown) error {
	if col.IsMissing(row) {
		if !in.Missing {
			return advice.Failf("fill it in, or train with a table that has it missing", "%s: the value is missing, and in training none was", t.at(row, in.Column))
		}
		x[len(x)-1] = 1
		return nil
	}
	if in.Kind == Number {
		v := float32((col.numbers[row] - in.Mean) / in.Deviation)
		if math.IsInf(float64(v), 0) {
			return advice.Failf("correct it", "%s: %v is too far from the mean of training, %v", t.at(row, in.Column), col.numbers[row], in.Mean)
		}
		x[0] = v
		return nil
	}
	s := col.Text(row)
	i, ok := in.places[s]
	switch {
	case !ok && u != Other:
		return advice.Failf("train with rows that have it, or with Unknown: Other", "%s: %q is none of the %d texts of training", t.at(row, in.Column), clip(s), len(in.Texts))
	case !ok:
		i = len(in.Texts)
	}
	x[i] = 1
	return nil
}

// column finds an input's column in another table. Numbers may stand for texts that look like them.
func (in *Input) column(t *Table) (*Column, error) {
	col, err := t.Column(in.Column)
	if err != nil {
		return nil, err
	}
	if in.Kind == Number && col.Kind == Text {
		for i := range t.Len() {
			if !col.IsMissing(i) {
				if _, ok := number(col.Text(i)); !ok {
					return nil, advice.Failf("correct it", "%s: %q is no number, as it was in training", t.at(i, col.Name), clip(col.Text(i)))
				}
			}
		}
		return nil, advice.Failf("write numbers as numbers", "%s: column %q has texts, in training it had numbers", t.name, col.Name)
	}
	return col, nil
}

// X are the inputs of rows, one row after another. The table needs no target.
func (e *Encoder) X(t *Table, rows []int) ([]float32, error) {
	width, at := e.Width(), 0
	x := make([]float32, len(rows)*width)
	for _, in := range e.Inputs {
		col, err := in.column(t)
		if err != nil {
			return nil, err
		}
		w := in.width(e.Unknown)
		for k, row := range rows {
			if err := in.put(x[k*width+at:][:w], t, col, row, e.Unknown); err != nil {
				return nil, err
			}
		}
		at += w
	}
	return x, nil
}

// Labels are the classes of rows.
func (e *Encoder) Labels(t *Table, rows []int) ([]int64, error) {
	col, err := t.Column(e.Target.Column)
	if err != nil {
		return nil, err
	}
	y := make([]int64, len(rows))
	for k, row := range rows {
		i, ok := e.Target.places[col.Text(row)]
		if !ok || col.IsMissing(row) {
			return nil, advice.Failf("leave the row out, or train with rows that have it", "%s: %q is none of the %d classes of training", t.at(row, col.Name), clip(col.Text(row)), len(e.Target.Texts))
		}
		y[k] = int64(i)
	}
	return y, nil
}

// Numbers are the normalised targets of rows.
func (e *Encoder) Numbers(t *Table, rows []int) ([]float32, error) {
	col, err := e.Target.column(t)
	if err != nil {
		return nil, err
	}
	y := make([]float32, len(rows))
	for k, row := range rows {
		if col.IsMissing(row) {
			return nil, advice.Failf("leave such rows out, as Present does", "%s: the target is missing", t.at(row, col.Name))
		}
		if err := e.Target.put(y[k:k+1], t, col, row, Refuse); err != nil {
			return nil, err
		}
	}
	return y, nil
}

// Source is a set of rows: X float32 [Width], and Y int64 for classification, float32 [1] for regression. It holds what it needs.
func (e *Encoder) Source(t *Table, rows []int) (data.Source[data.Pair], error) {
	x, err := e.X(t, rows)
	if err != nil {
		return nil, err
	}
	if e.Task == Classification {
		y, err := e.Labels(t, rows)
		if err != nil {
			return nil, err
		}
		return data.InMemory(x, []int{e.Width()}, y), nil
	}
	y, err := e.Numbers(t, rows)
	if err != nil {
		return nil, err
	}
	return data.InMemory(x, []int{e.Width()}, y, 1), nil
}

// String tells what goes in and what comes out.
func (e *Encoder) String() string {
	return fmt.Sprintf("%s of %q from %d inputs of %d columns (%s)", e.Task, e.Target.Column, e.Width(), len(e.Inputs), dtype.F32)
}

// Kinds are those of the input columns, by which [Config] reads another table as the first one was.
func (e *Encoder) Kinds() map[string]Kind {
	kinds := map[string]Kind{}
	for _, in := range e.Inputs {
		kinds[in.Column] = in.Kind
	}
	return kinds
}
