package train

import (
	"context"
	"slices"
	"strconv"

	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/machine"
	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/tensor"
)

// PredictConfig says what Predict is asked.
type PredictConfig struct {
	From    string   // a run folder; of models of pictures and texts published weights too
	Inputs  []string // files of pictures, tables; of a model that writes texts themselves
	Device  string   // as tensor.Open takes it; empty: the best there is
	Heads   int      // of a bare file of GPT weights; 0: as many as are 64 wide
	Threads int      // of the CPU; 0: all
	Invert  bool     // pictures: dark on light becomes light on dark, as the drawn digits are
	Unseen  bool     // tabular: texts that training did not have stand for any other, in place of an error
	Out     string   // folder of the pictures that a model makes of pictures; empty: each beside its input

	Watch Watcher // told in notes; nil: nobody
}

// Prediction is what a model makes of one input. Its JSON is a line of the command.
type Prediction struct {
	Input       string   `json:"input"`
	Line        int      `json:"line,omitempty"`        // of a table
	Class       string   `json:"class,omitempty"`       // the likeliest
	Probability float64  `json:"probability,omitempty"` // its
	Classes     []Chance `json:"classes,omitempty"`     // the likeliest, most likely first
	Value       *float64 `json:"value,omitempty"`       // of a number

	Areas   []Area `json:"areas,omitempty"`   // of a segmented picture
	Mask    string `json:"mask,omitempty"`    // its file: a PNG of the picture's size with a palette, whose entries are the classes
	Overlay string `json:"overlay,omitempty"` // the picture with the mask in colours

	Reconstruction string   `json:"reconstruction,omitempty"` // file of what a picture becomes by way of its code
	Error          *float64 `json:"error,omitempty"`          // of it: the mean square of the differences of values from 0 to 1
	ELBO           *float64 `json:"elbo,omitempty"`           // bound of the picture's log-likelihood, in nats
}

// Area is the share of a picture that a class has.
type Area struct {
	Class string  `json:"class"`
	Share float64 `json:"share"`
}

// Chance is a class, or a token that follows, with its probability.
type Chance struct {
	Class       string  `json:"class"`
	Probability float64 `json:"probability"`
}

// mostChances is how many classes a prediction tells.
const mostChances = 5

// asked is an input that was read.
type asked struct {
	name string
	line int
	x    []float32 // of the shape of a sample
	made []string  // files of pictures that are to be made of it
}

// Predict asks a model about inputs, and tells each result. Nothing is told unless all inputs can be read.
func Predict(ctx context.Context, c PredictConfig, tell func(p *Prediction) error) (err error) {
	defer machine.Recovered(&err)
	defer setThreads(c.Threads)()
	if c.Watch == nil {
		c.Watch = silent{}
	}
	m, err := open(c.From, c.Device, c.Heads, c.Watch)
	if err != nil {
		return err
	}
	defer m.close()
	defer machine.AllowWaits(m.env.Device())()
	if !m.env.Device().Computes() {
		return fail("give --device cpu", "%s computes nothing, so it foretells nothing", c.Device)
	}
	if m.arch.Writes() {
		return m.predictTexts(ctx, &c, tell)
	}
	var all []asked
	for _, input := range c.Inputs {
		list, err := families[m.arch.Of().Data].ask(m, &c, input)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	if err := m.name(&c, all); err != nil {
		return err
	}
	for some := range slices.Chunk(all, evalBatch(&m.arch, 0)) {
		if ctx.Err() != nil {
			return ErrInterrupted
		}
		predictions, err := m.predict(some)
		if err != nil {
			return err
		}
		for i, p := range predictions {
			p.Input, p.Line = some[i].name, some[i].line
			if err := tell(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// predict runs the model on inputs.
func (m *opened) predict(list []asked) (out []*Prediction, err error) {
	shape := m.arch.Input()
	var x []float32
	for _, a := range list {
		x = append(x, a.x...)
	}
	m.env.NoGrad().Eval().Do(func(env *tensor.Env) *tensor.Tensor {
		in := tensor.From(env, x, append([]int{len(list)}, shape...)...)
		switch g, paints := m.model.(zoo.Painter); {
		case paints:
			out, err = m.reconstruct(list, in, g)
			return nil
		case m.arch.Of().Areas:
			out, err = m.segment(list, m.model.Forward(in))
			return nil
		}
		y := m.model.Forward(in)
		if m.regresses() {
			for _, v := range y.Floats() {
				v = m.encoder.Value(v)
				out = append(out, &Prediction{Value: &v})
			}
			return nil
		}
		n, flat := y.Dim(-1), y.Softmax(-1).Floats()
		for row := range slices.Chunk(flat, n) {
			out = append(out, likeliest(row, m.className))
		}
		return nil
	})
	return out, err
}

// regresses tells a model of numbers.
func (m *opened) regresses() bool { return m.encoder != nil && m.encoder.Task == table.Regression }

// className names a class as the data does.
func (m *opened) className(i int) string {
	switch {
	case m.encoder != nil:
		return m.encoder.Classes()[i]
	case m.arch.Of().Classes != nil:
		return m.arch.Of().Classes[i]
	}
	return strconv.Itoa(i)
}

// likeliest is what probabilities of classes say.
func likeliest(p []float64, name func(i int) string) *Prediction {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	sorting.By(order, func(a, b int) int {
		switch {
		case p[a] > p[b]:
			return -1
		case p[a] < p[b]:
			return 1
		}
		return 0
	})
	out := &Prediction{}
	for _, i := range order[:min(len(order), mostChances)] {
		out.Classes = append(out.Classes, Chance{name(i), p[i]})
	}
	out.Class, out.Probability = out.Classes[0].Class, out.Classes[0].Probability
	return out
}

// predictTexts tells what may follow each text.
func (m *opened) predictTexts(ctx context.Context, c *PredictConfig, tell func(p *Prediction) error) error {
	var prompts [][]int64
	for _, text := range c.Inputs {
		if text == "" {
			return fail("give a text", "an empty text foretells nothing")
		}
		ids, err := m.encode(text)
		if err != nil {
			return explain(err, "give a text of tokens that the model knows")
		}
		if n := m.arch.Writing().Context; n > 0 {
			ids = ids[max(0, len(ids)-n):]
		}
		prompts = append(prompts, ids)
	}
	for i, ids := range prompts {
		if ctx.Err() != nil {
			return ErrInterrupted
		}
		var p *Prediction
		m.env.NoGrad().Eval().Do(func(env *tensor.Env) *tensor.Tensor {
			scores := m.model.Forward(tensor.From(env, ids, 1, len(ids))).Select(1, len(ids)-1)
			p = likeliest(scores.Softmax(-1).Floats(), func(id int) string {
				piece, err := m.decode(int64(id))
				if err != nil {
					piece = strconv.Itoa(id)
				}
				return piece
			})
			return nil
		})
		p.Input = c.Inputs[i]
		if err := tell(p); err != nil {
			return err
		}
	}
	return nil
}

// askPicture reads a picture, sized as the model takes it.
func (m *opened) askPicture(c *PredictConfig, path string) ([]asked, error) {
	shape := m.arch.Input()
	x, err := dataset.Picture(path, shape[0], shape[1], shape[2])
	if err != nil {
		return nil, explain(err, "give a picture in PNG, JPEG or GIF")
	}
	if c.Invert {
		for i, v := range x {
			x[i] = 1 - v
		}
	}
	return []asked{{name: path, x: x}}, nil
}

// askRows reads the rows of a table.
func (m *opened) askRows(c *PredictConfig, path string) ([]asked, error) {
	if m.encoder == nil {
		return nil, fail("give the folder of the run", "%s has no %s, which says what its inputs are", m.from, encoderFile)
	}
	t, err := new(job).readTable(path, m.encoder.Kinds())
	if err != nil {
		return nil, err
	}
	if !c.Unseen {
		if err := m.unseen(path, t); err != nil {
			return nil, err
		}
	}
	rows := make([]int, t.Len())
	for i := range rows {
		rows[i] = i
	}
	x, err := m.encoder.X(t, rows)
	if err != nil {
		return nil, explain(err, tableHint)
	}
	width := m.encoder.Width()
	list := make([]asked, len(rows))
	for i := range rows {
		list[i] = asked{name: path, line: t.Line(i), x: x[i*width:][:width]}
	}
	return list, nil
}

// unseen refuses the first text that training did not have.
func (m *opened) unseen(path string, t *table.Table) error {
	for _, in := range m.encoder.Inputs {
		col, err := t.Column(in.Column)
		if err != nil {
			return explain(err, "give a table with the columns of training")
		}
		if in.Kind != table.Text {
			continue
		}
		for i := range t.Len() {
			if s := col.Text(i); !col.IsMissing(i) && !slices.Contains(in.Texts, s) {
				return fail("correct it, train with rows that have it, or give --unseen to take it as any other", "%s, line %d, column %q: %q is none of the %d texts of training", path, t.Line(i), in.Column, s, len(in.Texts))
			}
		}
	}
	return nil
}
