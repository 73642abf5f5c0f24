package zoo

import (
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/metric"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// tableHidden are those of each hidden layer of a new tabular.
const tableHidden = 128

// tabular foretells a column of a table from the others: a class, or a number, whose mean is 0 and whose deviation 1.
var tabular = Kind{
	Name: "tabular", Task: "tabular", Data: Table, Defaults: Defaults{Epochs: 100, Batch: 64, Average: 0.99, Decay: 0.05, Patience: 10},
	Help: "a column of a table from the others: --data FILE.csv --target COLUMN",
	Check: func(a *Arch) error {
		c := a.TableConfig
		if c == nil || min(c.Inputs, c.Outputs, a.Hidden) < 1 || max(c.Inputs, c.Outputs, a.Hidden) > 1<<20 || !(c.Deviation >= 0) {
			return errors.New("inputs, outputs and hidden must be from 1 to 1048576")
		}
		return nil
	},
	Make:  func(env *tensor.Env, a *Arch) nn.Module { return model.NewTable(env, *a.TableConfig, a.Hidden) },
	Begin: func(a *Arch) { a.Hidden = tableHidden },
	Title: func(a *Arch) string {
		what := fmt.Sprintf("%d classes", a.Outputs)
		if a.regresses() {
			what = "a number"
		}
		return fmt.Sprintf("network of two hidden layers of %d, from %d inputs to %s", a.Hidden, a.Inputs, what)
	},
	Sizes: func(a *Arch) string {
		return fmt.Sprintf("tabular of inputs %d, hidden %d, outputs %d", a.Inputs, a.Hidden, a.Outputs)
	},
	Recognise: func(s Shapes, like *Arch) (Arch, bool) {
		if !s.rank("0.weight", 2) || !s.rank("2.weight", 2) || !s.rank("4.weight", 2) {
			return Arch{}, false
		}
		c := model.TableConfig{Inputs: s["0.weight"][1], Outputs: s["4.weight"][0]}
		if like.TableConfig != nil {
			c.Deviation = like.Deviation
		}
		return Arch{Kind: "tabular", TableConfig: &c, Hidden: s["0.weight"][0]}, true
	},
	Input: func(a *Arch) []int { return []int{a.Inputs} },
	Loss: func(a *Arch, m nn.Module, x, y *tensor.Tensor) (loss, out *tensor.Tensor) {
		out = m.Forward(x)
		if a.regresses() {
			return nn.MSE(out, y), out
		}
		return nn.CrossEntropy(out, y), out
	},
	Measure: func(a *Arch, m *metric.Meters, out, y *tensor.Tensor) {
		if a.regresses() {
			m.Numbers(out.Scale(a.unit()), y.Scale(a.unit()))
			return
		}
		m.Classes(out, y)
	},
}

// regresses tells a model of a number from one of classes.
func (a *Arch) regresses() bool { return a.Outputs == 1 }

// unit is what 1 of the numbers that a model learns is in those of the data.
func (a *Arch) unit() float64 { return max(a.Deviation, 0) }
