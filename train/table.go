package train

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/internal/dataset"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/model"
)

// tableHint is what to do about a table that cannot be read.
const tableHint = "give a table in CSV, TSV or JSON lines"

// newTable opens a table for a run. The rows to learn from and those held out are drawn by the seed; what is known of columns
// is known from the former.
func newTable(c *Config) (*job, error) {
	j := &job{arch: zoo.Tabular(c.Task, model.TableConfig{})}
	var kinds map[string]table.Kind
	if c.Init != "" {
		if err := j.initTable(c); err != nil {
			return nil, err
		}
		kinds = j.encoder.Kinds()
	}
	t, err := j.readTable(c.Data, kinds)
	if err != nil {
		return nil, err
	}
	train, test, err := j.divide(c, t)
	if err != nil {
		return nil, err
	}
	if err := j.encode(c, t, train); err != nil {
		return nil, err
	}
	return j, j.pair(c, t, train, test)
}

// initTable takes the model and the encoder from c.Init.
func (j *job) initTable(c *Config) error {
	a, err := readArch(c.Init, j.arch)
	if err != nil {
		return err
	}
	if a.Of().Data != zoo.Table {
		return fail(fmt.Sprintf("train %s with it", a.Of().Task), "%s is of type %s, and %s trains one of type %s", c.Init, a.Kind, c.Task, j.arch.Kind)
	}
	if j.encoder, err = loadEncoder(filepath.Dir(a.weights)); err != nil {
		return err
	}
	if c.Target == "" {
		c.Target = j.encoder.Target.Column
	}
	if was := j.encoder.Target.Column; c.Target != was {
		return fail("leave --target out", "--target %s contradicts %s, which foretells %s", c.Target, c.Init, was)
	}
	j.arch, j.weights = a.Arch, a.weights
	return nil
}

func (j *job) readTable(path string, kinds map[string]table.Kind) (*table.Table, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, explain(err, tableHint)
	}
	if j.text, err = dataset.Fingerprint(strings.NewReader(string(raw)), len(raw)); err != nil {
		return nil, err
	}
	t, err := table.Parse(path, raw, table.Config{Kinds: kinds})
	if err != nil {
		return nil, explain(err, tableHint)
	}
	for _, c := range t.Columns() {
		if text, row, strays, ok := c.Stray(); ok {
			j.notes = append(j.notes, fmt.Sprintf("the column %q is read as texts, each of them a class: all of its values are numbers but %d, the first %q in line %d; where nothing is known a cell is empty",
				c.Name, strays, text, t.Line(row)))
		}
	}
	return t, nil
}

// divide draws the rows to learn from and those held out: a tenth, of classes a tenth of each. Rows without a target are left out.
func (j *job) divide(c *Config, t *table.Table) (train, test []int, err error) {
	present, err := t.Present(c.Target)
	if err != nil {
		return nil, nil, explain(err, tableHint)
	}
	without := t.Len() - len(present)
	if without > 0 {
		j.notes = append(j.notes, fmt.Sprintf("%d of %d rows have no value of %s, and are left out", without, t.Len(), c.Target))
	}
	if len(present) < 2 {
		return nil, nil, fail("choose another --target, or fill it in", "%s: %d of its %d rows have a value of %s", c.Data, len(present), t.Len(), c.Target)
	}
	if c.Order == "sequential" {
		return present, nil, nil
	}
	col, err := t.Column(c.Target)
	if err != nil {
		return nil, nil, err
	}
	if without == 0 && classifies(c, col) {
		if train, test, err = t.SplitBy(c.Target, 0.9, c.Seed); err == nil {
			return train, test, nil
		}
	}
	if train, test, err = t.Split(0.9, c.Seed); err != nil {
		return nil, nil, explain(err, tableHint)
	}
	missing := func(i int) bool { return col.IsMissing(i) }
	return slices.DeleteFunc(train, missing), slices.DeleteFunc(test, missing), nil
}

// classifies tells whether a column's values are classes.
func classifies(c *Config, col *table.Column) bool {
	if c.Objective != "" {
		return c.Objective == string(table.Classification)
	}
	return col.Kind == table.Text
}

// encode learns the encoder from the rows to learn from, unless there is one, and sizes the model by it.
func (j *job) encode(c *Config, t *table.Table, train []int) (err error) {
	if j.encoder == nil {
		e := table.Encoding{Target: c.Target, Task: table.Task(c.Objective), Unknown: table.Other}
		for name := range strings.SplitSeq(c.Drop, ",") {
			if name = strings.TrimSpace(name); name != "" {
				e.Drop = append(e.Drop, name)
			}
		}
		if j.encoder, err = table.Fit(t, train, e); err != nil {
			return explain(err, "name columns that are no inputs by --drop")
		}
		j.arch.Inputs, j.arch.Outputs, j.arch.Deviation = j.encoder.Width(), 1, j.encoder.Target.Deviation
		if j.encoder.Task == table.Classification {
			j.arch.Outputs = len(j.encoder.Classes())
		}
	}
	if got := j.encoder.Width(); got != j.arch.Inputs {
		return fail("give a folder whose files belong together", "%s has %d inputs, and the model beside it %d", encoderFile, got, j.arch.Inputs)
	}
	return explain(j.arch.Check(), "change the sizes")
}

// pair makes the sets of rows.
func (j *job) pair(c *Config, t *table.Table, train, test []int) error {
	src, err := j.encoder.Source(t, train)
	if err != nil {
		return explain(err, tableHint)
	}
	if c.Given["batch"] && c.Order == "random" && c.Batch > len(train) {
		return fail(fmt.Sprintf("give --batch %d or less", len(train)), "--batch %d is more than the %d rows there are to learn from", c.Batch, len(train))
	}
	j.train, j.learnt = dataset.Pairs{Source: src}, len(train)
	j.wrap = data.Config{Shuffle: c.Order == "random", Wrap: c.Order == "sequential"}
	j.perEpoch = j.train.Batches
	if len(test) == 0 {
		return nil
	}
	held, err := j.encoder.Source(t, test)
	if err != nil {
		return explain(err, tableHint)
	}
	j.test, j.held = dataset.Pairs{Source: held}, len(test)
	return nil
}

// rows opens the rows to score: those that the run held out, or all that have a target.
func (m *opened) rows(c *EvalConfig, p *part) (dataset.Source, error) {
	if c.Tokens != "" {
		return nil, fail("give --data", "--tokens %s is no table", c.Tokens)
	}
	if m.encoder == nil {
		return nil, fail("give the folder of the run", "%s has no %s, which says what its inputs are", m.from, encoderFile)
	}
	j := &job{encoder: m.encoder}
	p.lots = true
	t, err := j.readTable(c.Data, m.encoder.Kinds())
	if err != nil {
		return nil, err
	}
	asRun := Config{Data: c.Data, Target: m.encoder.Target.Column, Order: "sequential"}
	if p.held {
		asRun.Objective, asRun.Order, asRun.Seed = string(m.encoder.Task), m.run.Order, m.run.Seed
	}
	all, test, err := j.divide(&asRun, t)
	if err != nil {
		return nil, err
	}
	for _, note := range j.notes {
		c.Watch.Note(note)
	}
	if p.held {
		all = test
	}
	if c.Skip >= len(all) {
		return nil, fail("skip fewer", "--skip %d leaves nothing of %d rows", c.Skip, len(all))
	}
	src, err := m.encoder.Source(t, all[c.Skip:])
	return dataset.Pairs{Source: src}, explain(err, tableHint)
}

func saveEncoder(dir string, e *table.Encoder) error {
	raw, err := json.MarshalIndent(e, "", " ")
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, encoderFile), append(raw, '\n'))
}

func loadEncoder(dir string) (*table.Encoder, error) {
	path := filepath.Join(dir, encoderFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, explain(err, "give the folder of a run of tabular")
	}
	e := &table.Encoder{}
	if err := json.Unmarshal(raw, e); err != nil {
		return nil, fail("give the folder of a run of tabular", "%s: %v", path, err)
	}
	if err := e.Check(); err != nil {
		return nil, fail("give the folder of a run of tabular", "%s: %v", path, err)
	}
	return e, nil
}
