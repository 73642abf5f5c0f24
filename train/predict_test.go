package train_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data/digits"
	"github.com/warpline-ml/warpline/data/table"
	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/train"
)

// foretold are the predictions for some inputs.
func foretold(t *testing.T, c train.PredictConfig) (list []*train.Prediction) {
	t.Helper()
	err := train.Predict(t.Context(), c, func(p *train.Prediction) error { list = append(list, p); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPredictRows: what is foretold of each row gives the figures of eval.
func TestPredictRows(t *testing.T) {
	rows, err := table.Open(traintest.CarsTest, table.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []string{"price", "sold"} {
		c := traintest.Config(t, "tabular", map[string]any{"data": traintest.Cars, "target": target, "epochs": 3})
		c.Out = filepath.Join(t.TempDir(), "run")
		traintest.Run(t, c)
		e, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Data: traintest.CarsTest})
		if err != nil {
			t.Fatal(err)
		}
		list := foretold(t, train.PredictConfig{From: c.Out, Inputs: []string{traintest.CarsTest}})
		col, err := rows.Column(target)
		if err != nil || len(list) != rows.Len() {
			t.Fatalf("%d predictions of %d rows: %v", len(list), rows.Len(), err)
		}
		right, off := 0.0, 0.0
		for i, p := range list {
			if p.Line != rows.Line(i) || p.Input != traintest.CarsTest {
				t.Fatalf("row %d is %s:%d", i, p.Input, p.Line)
			}
			if target == "price" {
				off += math.Abs(*p.Value-col.Number(i)) / float64(len(list))
			} else if p.Class == col.Text(i) {
				right += 1 / float64(len(list))
			}
		}
		if target == "price" {
			within(t, "mae", off, e.Metrics["mae"], 1e-3)
		} else {
			within(t, "accuracy", right, e.Metrics["accuracy"], 1e-9)
		}
		refuseRows(t, c.Out)
	}
}

// refuseRows asks about rows that cannot be encoded: errors name the cell, and nothing is told.
func refuseRows(t *testing.T, run string) {
	const head = "make,fuel,age,km,power,owners,town,price,sold\n"
	const good = "Adler,petrol,3,40000,90,1,north,9000,yes\n"
	for _, c := range []struct{ name, text, want string }{
		{"unseen", head + good + "Trabant,petrol,3,40000,90,1,north,9000,yes\n", `line 3, column "make": "Trabant" is none of the 5 texts`},
		{"missing", head + good + ",petrol,3,40000,90,1,north,9000,yes\n", `line 3, column "make": the value is missing`},
		{"no number", head + good + "Adler,petrol,young,40000,90,1,north,9000,yes\n", `line 3, column 14: "young" is no number`},
		{"no column", "make,fuel\nAdler,petrol\n", `has no column "`},
		{"ragged", head + "Adler,petrol\n", "line 2"},
		{"empty", "", "is empty"},
	} {
		path := filepath.Join(t.TempDir(), "rows.csv")
		if err := os.WriteFile(path, []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		told := 0
		err := train.Predict(t.Context(), train.PredictConfig{From: run, Inputs: []string{traintest.CarsTest, path}}, func(*train.Prediction) error { told++; return nil })
		var known *advice.Error
		if !errors.As(err, &known) || !strings.Contains(known.Text, c.want) || told > 0 {
			t.Errorf("%s: %v, %d told", c.name, err, told)
		}
		if c.name == "unseen" {
			if list := foretold(t, train.PredictConfig{From: run, Inputs: []string{path}, Unseen: true}); len(list) != 2 {
				t.Errorf("with Unseen %d rows", len(list))
			}
		}
	}
}

// TestPredictPictures: digits that are written to files, larger and in the negative too, are taken for what they are as in a set.
func TestPredictPictures(t *testing.T) {
	c := traintest.Config(t, "mlp", map[string]any{"steps": 150})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	for _, way := range []struct {
		scale  int
		invert bool
	}{{1, false}, {3, true}} {
		var paths []string
		var labels []string
		for i := range 30 {
			pixels := make([]float32, 28*28)
			labels = append(labels, strconv.Itoa(int(digits.Draw(pixels, 7, i))))
			paths = append(paths, drawn(t, pixels, way.scale, way.invert))
		}
		right := 0
		for i, p := range foretold(t, train.PredictConfig{From: c.Out, Inputs: paths, Invert: way.invert}) {
			sum := 0.0
			for _, k := range p.Classes {
				sum += k.Probability
			}
			if p.Class != p.Classes[0].Class || p.Probability != p.Classes[0].Probability || sum > 1+1e-6 || len(p.Classes) != 5 {
				t.Errorf("%+v", p)
			}
			if p.Class == labels[i] {
				right++
			}
		}
		if right < 24 {
			t.Errorf("%+v: %d of %d right", way, right, len(paths))
		}
	}
	for _, bad := range []string{"none.png", "../train.go"} {
		if err := train.Predict(t.Context(), train.PredictConfig{From: c.Out, Inputs: []string{bad}}, nil); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// drawn writes a picture as PNG.
func drawn(t *testing.T, pixels []float32, scale int, invert bool) string {
	m := image.NewGray(image.Rect(0, 0, 28*scale, 28*scale))
	for y := range 28 * scale {
		for x := range 28 * scale {
			v := uint8(255*pixels[y/scale*28+x/scale] + .5)
			if invert {
				v = 255 - v
			}
			m.SetGray(x, y, color.Gray{Y: v})
		}
	}
	path := filepath.Join(t.TempDir(), "digit.png")
	save(t, path, m)
	return path
}

// TestPredictText: what follows a text is what sampling without chance takes.
func TestPredictText(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(text, bytes.Repeat([]byte("abcabd"), 300), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, task := range []string{"gpt", "lstm"} {
		predictText(t, traintest.Config(t, task, map[string]any{"data": text, "steps": 30, "context": 16, "layers": 1, "width": 32}))
	}
}

func predictText(t *testing.T, c train.Config) {
	t.Helper()
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	for _, prompt := range []string{"a", "abc", strings.Repeat("abcabd", 9)} {
		p := foretold(t, train.PredictConfig{From: c.Out, Inputs: []string{prompt}})[0]
		next := ""
		_, err := train.Sample(t.Context(), train.SampleConfig{From: c.Out, Prompt: prompt, Length: 1}, func(s string) error { next = s; return nil })
		if err != nil || p.Class != next || p.Input != prompt || !slices.ContainsFunc(p.Classes, func(k train.Chance) bool { return k.Class == next }) {
			t.Errorf("%q: %+v, sampled %q, %v", prompt, p, next, err)
		}
	}
	for _, bad := range []string{"", "xyz"} {
		if err := train.Predict(t.Context(), train.PredictConfig{From: c.Out, Inputs: []string{"a", bad}}, func(*train.Prediction) error { return fmt.Errorf("told") }); err == nil || err.Error() == "told" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
