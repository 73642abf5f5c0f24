package train_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data/shapes"
	"github.com/warpline-ml/warpline/internal/npy"
	"github.com/warpline-ml/warpline/internal/traintest"
	"github.com/warpline-ml/warpline/internal/zoo"
	"github.com/warpline-ml/warpline/train"
)

// asks is what predict is given for a task: pictures, rows or a text; nil where nobody has an input of that form.
func asks(t *testing.T, task string) []string {
	switch k := zoo.TrainedBy(task); {
	case k.Data == zoo.Table:
		return []string{traintest.Cars}
	case k.Data == zoo.Text:
		return []string{"1 2 3"} // numbers of tokens
	case task == "triage":
		return nil
	}
	return []string{drawn(t, make([]float32, 28*28), 1, false)}
}

// TestUses walks all tasks: after a step or two, eval tells its loss and its figures; predict answers about each input with something;
// sample writes or draws where a model can. What a task cannot do is an error that tells which can, and leaves nothing.
func TestUses(t *testing.T) {
	for _, task := range train.Tasks {
		change := traintest.Smallest(t, "..")[task]
		if change == nil {
			t.Errorf("task %s has no row", task)
			continue
		}
		change["steps"], change["device"] = 1, "cpu"
		t.Run(task, func(t *testing.T) {
			c := traintest.Config(t, task, change)
			c.Out = filepath.Join(t.TempDir(), "run")
			traintest.Run(t, c)
			testEval(t, &c)
			testPredict(t, &c)
			testSample(t, &c)
		})
	}
}

func testEval(t *testing.T, c *train.Config) {
	r, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Device: "cpu", Data: c.Data, Tokens: c.Tokens, Skip: traintest.Skipped[c.Task]})
	if err != nil || len(r.Metrics) == 0 || !(math.Abs(r.Loss) < 1e6) || r.Samples == 0 || r.Held < r.Samples || r.Task != c.Task {
		t.Errorf("eval: %+v, %v", r, err)
	}
}

func testPredict(t *testing.T, c *train.Config) {
	inputs := asks(t, c.Task)
	p := train.PredictConfig{From: c.Out, Device: "cpu", Inputs: inputs}
	if inputs == nil {
		p.Inputs = []string{drawn(t, make([]float32, 28*28), 1, false)}
		if err := train.Predict(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), c.Out) {
			t.Errorf("predict of what nobody has: %v", err)
		}
		return
	}
	told := 0
	err := train.Predict(t.Context(), p, func(a *train.Prediction) error {
		told++
		if a.Input != inputs[0] || a.Class == "" && a.Value == nil && a.Areas == nil && a.ELBO == nil {
			t.Errorf("predict tells %+v", a)
		}
		return nil
	})
	if err != nil || told == 0 {
		t.Errorf("predict tells %d: %v", told, err)
	}
}

func testSample(t *testing.T, c *train.Config) {
	n := 0
	s := train.SampleConfig{From: c.Out, Device: "cpu", Length: 4, Count: 5}
	out, err := train.Sample(t.Context(), s, func(string) error { n++; return nil })
	if !slices.Contains(traintest.Generating(), c.Task) {
		var known *train.Error
		if !errors.As(err, &known) || !strings.Contains(known.Hint, "vae") || !strings.Contains(known.Hint, "eval") {
			t.Errorf("sample: %+v, %v", out, err)
		}
		return
	}
	if err != nil || out.Tokens != n || n != 4 && len(out.Pictures) != 5 {
		t.Errorf("sample: %+v after %d pieces, %v", out, n, err)
	}
	other := map[bool]string{true: "count", false: "prompt"}[n > 0]
	s.Given = map[string]bool{other: true}
	if _, err := train.Sample(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), "--"+other) {
		t.Errorf("a setting of others: %v", err)
	}
}

// decoded reads a picture.
func decoded(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, _, err := image.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestMasks: a picture's mask has its size and the classes as entries of its palette, in the shares that are told; what it does not cover
// is in the overlay as it was. Nothing is replaced.
func TestMasks(t *testing.T) {
	c := traintest.Config(t, "unet", map[string]any{"batch": 4, "steps": 12, "average": 0})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	x, labels := make([]float32, shapes.Side*shapes.Side), make([]int64, shapes.Side*shapes.Side)
	shapes.Draw(x, labels, 9, 3)
	const wide, high = 150, 100
	picture := image.NewGray(image.Rect(0, 0, wide, high))
	for k := range picture.Pix {
		picture.Pix[k] = uint8(255 * x[k/wide*shapes.Side/high*shapes.Side+k%wide*shapes.Side/wide])
	}
	path := filepath.Join(t.TempDir(), "a.picture.png")
	save(t, path, picture)
	p := foretold(t, train.PredictConfig{From: c.Out, Inputs: []string{path}})[0]
	if want := strings.TrimSuffix(path, ".png"); p.Mask != want+"-mask.png" || p.Overlay != want+"-overlay.png" {
		t.Fatalf("%+v", p)
	}
	mask, ok := decoded(t, p.Mask).(*image.Paletted)
	over := decoded(t, p.Overlay)
	if !ok || mask.Rect != picture.Rect || over.Bounds() != picture.Rect || len(mask.Palette) != len(shapes.Classes) {
		t.Fatalf("mask %v, overlay %v", mask, over.Bounds())
	}
	shares := map[string]float64{}
	for k, class := range mask.Pix {
		shares[shapes.Classes[class]] += 1. / (wide * high)
		want := color.GrayModel.Convert(over.At(k%wide, k/wide)) == color.Color(color.Gray{Y: picture.Pix[k]})
		if class == 0 && !want {
			t.Fatalf("pixel %d of the ground is another in the overlay", k)
		}
	}
	for _, a := range p.Areas {
		if math.Abs(shares[a.Class]-a.Share) > 0.02 { // of the mask at another size
			t.Errorf("%s has %.3f of the mask, told %.3f", a.Class, shares[a.Class], a.Share)
		}
	}
	ask := func(out string, inputs ...string) error {
		return train.Predict(t.Context(), train.PredictConfig{From: c.Out, Inputs: inputs, Out: out}, func(*train.Prediction) error { return nil })
	}
	if err := ask("", path); err == nil || !strings.Contains(err.Error(), p.Mask) {
		t.Errorf("again: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "masks")
	if err := ask(dir, path); err != nil {
		t.Error(err)
	}
	if err := ask(filepath.Join(dir, "more"), path, path); err == nil || !strings.Contains(err.Error(), "both") {
		t.Errorf("twice: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.picture-mask.png")); err != nil {
		t.Error(err)
	}
}

// TestDrawing: the same seed draws the same pictures, into a square of them; a file that is named is not replaced. A reconstruction has the
// error that is told.
func TestDrawing(t *testing.T) {
	c := traintest.Config(t, "vae", map[string]any{"batch": 16, "steps": 20})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	draw := func(out string, count int, seed uint64) (*train.Sampled, error) {
		return train.Sample(t.Context(), train.SampleConfig{From: c.Out, Count: count, Seed: seed, Out: out}, nil)
	}
	first, err := draw("", 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	again, err := draw("", 5, 1)
	if err != nil || !slices.Equal(first.Pictures[4].Pixels, again.Pictures[4].Pixels) || first.Out != filepath.Join(c.Out, "sample.png") {
		t.Errorf("%s and %s, %v", first.Out, again.Out, err)
	}
	file := filepath.Join(t.TempDir(), "x.png")
	other, err := draw(file, 5, 2)
	if err != nil || slices.Equal(first.Pictures[0].Pixels, other.Pictures[0].Pixels) {
		t.Errorf("another seed: %v", err)
	}
	sheet := decoded(t, file)
	if sheet.Bounds() != image.Rect(0, 0, 3*29-1, 2*29-1) {
		t.Errorf("a sheet of %v", sheet.Bounds())
	}
	for k, v := range other.Pictures[4].Pixels { // in the second row, in the middle
		if got := color.GrayModel.Convert(sheet.At(29+k%28, 29+k/28)).(color.Gray).Y; math.Abs(float64(got)-255*float64(v)) > 0.51 {
			t.Fatalf("pixel %d is %d, drawn %v", k, got, v)
		}
	}
	if _, err := draw(file, 5, 2); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a file that there is: %v", err)
	}
	for _, count := range []int{0, -1, 1 << 20} {
		if _, err := draw("", count, 0); err == nil || !strings.Contains(err.Error(), "--count") {
			t.Errorf("%d pictures: %v", count, err)
		}
	}
	pixels := make([]float32, 28*28)
	for k := range pixels {
		pixels[k] = float32(k%28) / 27
	}
	path := drawn(t, pixels, 1, false)
	p := foretold(t, train.PredictConfig{From: c.Out, Inputs: []string{path}})[0]
	became, sum := decoded(t, p.Reconstruction), 0.0
	for k := range pixels {
		d := float64(color.GrayModel.Convert(became.At(k%28, k/28)).(color.Gray).Y)/255 - math.Round(255*float64(pixels[k]))/255
		sum += d * d / 784
	}
	if math.Abs(sum-*p.Error) > 2e-3*sum+1e-5 || !(*p.ELBO < 0) {
		t.Errorf("error %v, told %v, elbo %v", sum, *p.Error, *p.ELBO)
	}
}

// TestUnit: pictures whose values a model that draws could not mean are refused, to learn from and to score.
func TestUnit(t *testing.T) {
	bad := floats32(t, 40, 8, 1.5)
	c := traintest.Config(t, "vae", map[string]any{"data": bad, "batch": 8, "steps": 1})
	if _, err := train.Run(t.Context(), c, nil); err == nil || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "1.125") {
		t.Errorf("%v", err)
	}
	c = traintest.Config(t, "vae", map[string]any{"data": floats32(t, 40, 8, 1), "batch": 8, "steps": 1})
	c.Out = filepath.Join(t.TempDir(), "run")
	traintest.Run(t, c)
	if _, err := train.Evaluate(t.Context(), train.EvalConfig{From: c.Out, Data: bad}); err == nil || !strings.Contains(err.Error(), "1.125") {
		t.Errorf("%v", err)
	}
}

// save writes a picture as PNG.
func save(t *testing.T, path string, m image.Image) {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

// floats32 are n pictures of a side in float32, with values from 0 to most.
func floats32(t *testing.T, n, side int, most float32) string {
	images := &npy.Array{DType: "<f4", Shape: []int{n, 1, side, side}}
	for i := range n * side * side {
		images.Data = binary.LittleEndian.AppendUint32(images.Data, math.Float32bits(most*float32(i%5)/4))
	}
	return traintest.Archive(t, images, &npy.Array{DType: "|u1", Shape: []int{n}, Data: make([]byte, n)})
}
