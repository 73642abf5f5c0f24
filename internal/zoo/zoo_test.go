package zoo_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// begun is a small new model of a kind.
func begun(k *zoo.Kind) zoo.Arch {
	switch k.Data {
	case zoo.Text:
		return zoo.Writer(k.Task, zoo.Writing{Vocab: 7, Context: 5, Layers: 2, Heads: 2, Width: 8})
	case zoo.Drawn:
		return zoo.Begun(k.Task)
	case zoo.Table:
		return zoo.Tabular(k.Task, model.TableConfig{Inputs: 5, Outputs: 3})
	}
	return zoo.Classifier(k.Task, model.ImageConfig{Channels: 2, Height: 12, Width: 8, Classes: 3})
}

// TestKinds: every row can be described, written, made, trained by its task and told by the shapes of its weights, by no
// other row. A row that writes does so.
func TestKinds(t *testing.T) {
	env, err := tensor.Open("cpu")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range zoo.Kinds {
		t.Run(k.Task, func(t *testing.T) {
			a := begun(k)
			if a.Planes > 0 { // one of a size for tests
				a.Planes, a.Blocks = 4, &[4]int{1, 1, 1, 1}
			}
			if err := a.Check(); err != nil || a.Kind != k.Name || a.Of() != k || zoo.TrainedBy(k.Task) != k || zoo.Named(k.Name) != k || k.Help == "" {
				t.Fatalf("%+v: %v", a, err)
			}
			raw, err := json.Marshal(a)
			var again zoo.Arch
			if err != nil || json.Unmarshal(raw, &again) != nil || again.Check() != nil || again.Sizes() != a.Sizes() || again.Title() != a.Title() {
				t.Errorf("%s becomes %+v: %v", raw, again, err)
			}
			m := a.Make(env)
			if _, ok := m.(zoo.Author); ok != (k.Data == zoo.Text) {
				t.Errorf("a model that writes: %v", ok)
			}
			shapes := zoo.Shapes{}
			for path, s := range nn.State(m) {
				name := strings.TrimPrefix(path, "transformer.")
				shapes[name] = s.Shape()
				if tr, ok := m.(interface{ Transposed(string) bool }); ok && s.Rank() == 2 && tr.Transposed(path) {
					shapes[name] = []int{s.Dim(1), s.Dim(0)}
				}
			}
			got, err := zoo.Recognise(shapes, &a)
			if err != nil || got.Kind != k.Name || got.Sizes() != a.Sizes() {
				t.Errorf("its weights are taken for %+v: %v", got, err)
			}
			for _, other := range zoo.Kinds {
				if _, ok := other.Recognise(shapes, &a); ok && other != k {
					t.Errorf("%s takes its weights for its own", other.Name)
				}
			}
		})
	}
}

// TestTasks: tasks and names are told apart.
func TestTasks(t *testing.T) {
	tasks := zoo.Tasks(false)
	if sorted := slices.Sorted(slices.Values(tasks)); len(slices.Compact(sorted)) != len(tasks) || tasks[0] != "digits" {
		t.Errorf("tasks %v", tasks)
	}
	if zoo.TrainedBy("nothing") != nil || zoo.Named("nothing") != nil {
		t.Error("a model of no task")
	}
	a := zoo.Arch{Kind: "bert"}
	if err := a.Check(); err == nil || !strings.Contains(err.Error(), "bert") || a.Writes() {
		t.Errorf("%v", err)
	}
}
