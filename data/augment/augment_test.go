package augment_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/data/augment"
	"github.com/warpline-ml/warpline/tensor"
)

func fresh(t *testing.T) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// pictures is a set of n random pictures; the label of sample i is i.
func pictures(n, c, h, w int) data.Source[data.Pair] {
	r := rand.New(rand.NewPCG(1, 2))
	x, y := make([]float32, n*c*h*w), make([]int64, n)
	for i := range x {
		x[i] = float32(r.IntN(256)) / 255
	}
	for i := range y {
		y[i] = int64(i)
	}
	return data.InMemory(x, []int{c, h, w}, y)
}

// everything is all random transforms, one after another.
func everything() []augment.Transform {
	return []augment.Transform{
		augment.RandomResizedCrop(9, 9, [2]float64{0.08, 1}, [2]float64{0.75, 4.0 / 3}), augment.RandomFlip(0.5), augment.RandomFlipVertical(0.5),
		augment.RandomRotation(20), augment.ColorJitter(augment.Jitter{0.4, 0.4, 0.4, 0.1}), augment.RandAugment(2, 9),
		augment.RandomCrop(8, 8, 2), augment.Normalize([]float32{0.5, 0.5, 0.5}, []float32{0.2, 0.2, 0.2}),
	}
}

// pixels are each sample's in an epoch.
func pixels(t *testing.T, env *tensor.Env, src data.Source[data.Pair], c data.Config) map[int64][]float32 {
	t.Helper()
	out := map[int64][]float32{}
	for b, err := range data.Batches(env, src, c) {
		if err != nil {
			t.Fatal(err)
		}
		x, y := tensor.Data[float32](b.X), tensor.Data[int64](b.Y)
		for i, label := range y {
			out[label] = x[i*len(x)/len(y) : (i+1)*len(x)/len(y)]
		}
	}
	return out
}

// TestPixelsAreTheSamples: sample, epoch and seed decide the pixels; workers, order and size of batches do not.
func TestPixelsAreTheSamples(t *testing.T) {
	src, err := augment.Apply(pictures(12, 3, 12, 11), everything()...)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(src.Fields()[0].Shape, []int{3, 8, 8}) {
		t.Fatalf("fields %v", src.Fields())
	}
	env := fresh(t)
	want := pixels(t, env, src, data.Config{Size: 4, Workers: -1})
	for _, c := range []data.Config{{Size: 4, Workers: 1}, {Size: 4, Workers: 4}, {Size: 5, Workers: 3, Shuffle: true}, {Size: 1}, {Size: 12, Sampler: data.Bucketed(make([]int, 12))}} {
		if got := pixels(t, env, src, c); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v: other pixels", c)
		}
	}
	for what, got := range map[string]map[int64][]float32{
		"epoch": pixels(t, env, src, data.Config{Size: 4, Epoch: 1}),
		"seed":  pixels(t, env.Seed(9), src, data.Config{Size: 4}),
		"name":  pixels(t, env, src, data.Config{Size: 4, Name: "other"}),
	} {
		for i := range want {
			if slices.Equal(got[i], want[i]) {
				t.Errorf("another %s, and the same pixels of sample %d", what, i)
			}
		}
	}
}

func TestRandomTransforms(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	p := &augment.Picture{Pix: make([]float32, 6*5), C: 1, H: 6, W: 5}
	for i := range p.Pix {
		p.Pix[i] = float32(i+1) / 30
	}
	// Crops of 4×4 with a padding of 1 are at 5·4 places, each as often.
	count := map[string]float64{}
	const n = 4000
	for range n {
		count[fmt.Sprint(augment.RandomCrop(4, 4, 1)(p, r).Pix)]++
	}
	chi := 0.0
	for _, c := range count {
		chi += (c - n/20) * (c - n/20) / (n / 20)
	}
	if len(count) != 20 || chi > 43.8 { // 0.1 % with 19 degrees of freedom
		t.Errorf("%d places, χ² is %.1f", len(count), chi)
	}
	flips := 0.0
	for range n {
		if augment.RandomFlip(0.3)(p, r) != p {
			flips++
		}
	}
	if math.Abs(flips-0.3*n) > 4*math.Sqrt(0.3*0.7*n) {
		t.Errorf("%v flips of %d", flips, n)
	}
	// A crop without choice is the picture.
	same := augment.RandomResizedCrop(6, 5, [2]float64{1, 1}, [2]float64{5.0 / 6, 5.0 / 6})(p, r)
	if !slices.Equal(same.Pix, p.Pix) {
		t.Errorf("the whole picture becomes %v", same.Pix)
	}
	// A form that the picture cannot have: the largest part in the middle.
	wide := &augment.Picture{Pix: make([]float32, 2*40), C: 1, H: 2, W: 40}
	wide.Pix[20] = 1
	if got := augment.RandomResizedCrop(2, 2, [2]float64{1, 1}, [2]float64{1, 1})(wide, r); got.Pix[1] != 1 {
		t.Errorf("the middle is %v", got.Pix)
	}
	kinds := map[string]bool{}
	for range 200 {
		kinds[fmt.Sprint(augment.RandAugment(1, 30)(p, r).Pix)] = true
	}
	if len(kinds) < 12 {
		t.Errorf("RandAugment makes %d different pictures", len(kinds))
	}
	if got := augment.ColorJitter(augment.Jitter{})(p, r); got != p {
		t.Error("a jitter of nothing changes the picture")
	}
}

func TestBadUse(t *testing.T) {
	env := fresh(t)
	one := pictures(1, 2, 4, 4)
	for want, f := range map[string]func(){
		"a part of 9×9 of a picture of 4×4":      func() { augment.Apply(one, augment.CenterCrop(9, 9)) },
		"a part of 7×7 of a picture of 6×6":      func() { augment.Apply(one, augment.RandomCrop(7, 7, 1)) },
		"a picture of [0 4]":                     func() { augment.Resize(0, 4) },
		"areas [0 1]":                            func() { augment.RandomResizedCrop(4, 4, [2]float64{0, 1}, [2]float64{1, 1}) },
		"a chance of 2":                          func() { augment.RandomFlip(2) },
		"Hue:0.7":                                func() { augment.ColorJitter(augment.Jitter{Hue: 0.7}) },
		"1 operations of magnitude 31":           func() { augment.RandAugment(1, 31) },
		"1 means and 1 deviations for 2 channel": func() { augment.Apply(one, augment.Normalize([]float32{1}, []float32{1})) },
		"a picture of 2 channels":                func() { augment.Apply(one, augment.ColorJitter(augment.Jitter{Contrast: 1})) },
		"alpha 0": func() {
			augment.MixUp(&data.Pair{Turn: data.Turn{Env: env}, X: env.Ones(2, 1), Y: env.Arange(2)}, 2, 0)
		},
		"inputs of shape [2 1]": func() {
			augment.CutMix(&data.Pair{Turn: data.Turn{Env: env}, X: env.Ones(2, 1), Y: env.Arange(2)}, 2, 1)
		},
	} {
		_, err := env.Try(func(*tensor.Env) *tensor.Tensor {
			f()
			return nil
		})
		if e := (*tensor.Error)(nil); !errors.As(err, &e) || !strings.Contains(e.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := augment.Apply(data.InMemory([]float32{1}, []int{1}, []int64{0})); err == nil || !strings.Contains(err.Error(), "samples are f32[1]") {
		t.Error(err)
	}
	odd, err := augment.Apply(pictures(40, 1, 4, 5), func(p *augment.Picture, r *rand.Rand) *augment.Picture {
		if r.IntN(2) == 0 {
			return p
		}
		return p.Crop(0, 0, 5, 4)
	})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range data.Batches(env, odd, data.Config{Size: 40}) {
		last = err
	}
	if last == nil || !strings.Contains(last.Error(), "end with a crop or Resize") {
		t.Error(last)
	}
}

// TestMixing: pictures and labels are mixed in one proportion, the same for the same batch, and of the mean and spread of Beta.
func TestMixing(t *testing.T) {
	env := fresh(t)
	const n, h, w, alpha = 4, 6, 8, 0.4
	src := data.InMemory(ramp(n*h*w), []int{1, h, w}, []int64{0, 1, 2, 1})
	walk := func(mix func(b *data.Pair) (x, y *tensor.Tensor)) (xs, ys [][]float64) {
		for b, err := range data.Batches(env, src, data.Config{Size: n, Steps: 600}) {
			if err != nil {
				t.Fatal(err)
			}
			x, y := mix(b)
			xs, ys = append(xs, x.Floats()), append(ys, y.Floats())
		}
		return xs, ys
	}
	labels := []int{0, 1, 2, 1}
	up := func(b *data.Pair) (x, y *tensor.Tensor) { return augment.MixUp(b, 3, alpha) }
	xs, ys := walk(up)
	again, _ := walk(up)
	if !reflect.DeepEqual(xs, again) {
		t.Error("the same batches are mixed otherwise")
	}
	mean, square := 0.0, 0.0
	for k := range xs {
		share := ys[k][3*0] // of class 0 in the first row, whose neighbour is of class 1
		mean, square = mean+share/600, square+share*share/600
		for r := range n {
			prev := (r + n - 1) % n
			for i := range h * w {
				want := share*float64(r*h*w+i) + (1-share)*float64(prev*h*w+i)
				if got := xs[k][r*h*w+i]; math.Abs(got-want) > 1e-3 {
					t.Fatalf("step %d, row %d: %v, want %v", k, r, got, want)
				}
			}
			want := make([]float64, 3)
			want[labels[r]] += share
			want[labels[prev]] += 1 - share
			for c := range want {
				if math.Abs(ys[k][3*r+c]-want[c]) > 1e-6 {
					t.Fatalf("step %d: targets %v", k, ys[k])
				}
			}
		}
	}
	if v := 1 / (4 * (2*alpha + 1)); math.Abs(mean-0.5) > 4*math.Sqrt(v/600) || math.Abs(square-mean*mean-v) > 0.02 {
		t.Errorf("shares have mean %.3f and variance %.3f, not 0.5 and %.3f", mean, square-mean*mean, v)
	}
	xs, ys = walk(func(b *data.Pair) (x, y *tensor.Tensor) { return augment.CutMix(b, 3, 1) })
	mean = 0
	for k := range xs {
		foreign := 0
		for i := range h * w {
			switch got := xs[k][h*w+i]; got { // row 1, whose neighbour is row 0
			case float64(h*w + i):
			case float64(i):
				foreign++
			default:
				t.Fatalf("step %d: pixel %v", k, got)
			}
		}
		share := 1 - float64(foreign)/(h*w)
		if math.Abs(ys[k][3+1]-share) > 1e-6 || math.Abs(ys[k][3]-(1-share)) > 1e-6 {
			t.Fatalf("step %d: %d foreign pixels and targets %v", k, foreign, ys[k])
		}
		mean += share / 600
	}
	if mean < 0.6 || mean > 0.95 {
		t.Errorf("the mean share is %.3f", mean)
	}
}

func ramp(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	return x
}

func BenchmarkTransforms(b *testing.B) {
	p := augment.NewPicture(3, 32, 32)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range p.Pix {
		p.Pix[i] = r.Float32()
	}
	for name, t := range map[string]augment.Transform{"crop": augment.RandomCrop(32, 32, 4), "resized": augment.RandomResizedCrop(32, 32, [2]float64{0.08, 1}, [2]float64{0.75, 1.33}),
		"jitter": augment.ColorJitter(augment.Jitter{0.4, 0.4, 0.4, 0.1}), "randaugment": augment.RandAugment(2, 9), "rotate": augment.RandomRotation(15)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				t(p, r)
			}
		})
	}
}
