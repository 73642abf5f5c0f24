package ckpt

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/warpline-ml/warpline/data"
	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/hostmem"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// run is a tiny training run with dropout and a shuffled loader.
type run struct {
	env *tensor.Env
	State
}

func newRun(t *testing.T, hidden int) *run {
	t.Helper()
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	m := nn.Sequential{nn.NewLinear(env, 3, hidden), nn.Dropout{P: 0.2}, nn.ReLU{}, nn.NewBatchNorm(env, hidden), nn.NewLinear(env, hidden, 2)}
	return &run{env, State{Model: m, Optimizer: optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-2})}}
}

// train goes on until so many steps are done.
func (r *run) train(t *testing.T, to int) {
	t.Helper()
	if to == r.Step {
		return
	}
	x, y := make([]float32, 3*8), make([]int64, 8)
	for i := range y {
		x[3*i+i%3], y[i] = 1, int64(i%2)
	}
	model := r.Model.(nn.Sequential)
	c := data.Config{Size: 3, Shuffle: true, Epoch: r.Loader.Epoch, Skip: r.Loader.Batch, Steps: to - r.Step}
	for b, err := range data.Batches(r.env, data.InMemory(x, []int{3}, y), c) {
		if err != nil {
			t.Fatal(err)
		}
		noise := r.env.Randn(b.X.Shape()...).In(b.Env).Scale(0.1) // of the root's random path
		nn.CrossEntropy(model.Forward(b.X.Add(noise)), b.Y).Backward()
		r.Optimizer.Step()
		r.Step++
		r.Loader, r.Draws = b.Position(), r.env.Draws()
	}
}

func (r *run) resume(t *testing.T, dir string) {
	t.Helper()
	path, warnings, err := Latest(dir, &r.State)
	if err != nil || len(warnings) > 0 {
		t.Fatal(path, warnings, err)
	}
	r.env.SetDraws(r.Draws)
}

func (r *run) values() []float64 {
	var out []float64
	for _, p := range nn.State(r.Model) {
		out = append(out, p.Floats()...)
	}
	return out
}

func save1(t *testing.T, dir string, r *run) string {
	t.Helper()
	path, err := Save(dir, &r.State)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLevel: a checkpoint of the CPU says which level computed it, one of another device nothing.
func TestLevel(t *testing.T) {
	for _, l := range cpufeat.Levels() {
		restore := cpufeat.Set(l)
		r, dir := newRun(t, 5), t.TempDir()
		save1(t, dir, r)
		restore()
		want := l.String()
		if r.env.Device().Name() != "cpu" {
			want = ""
		}
		again := newRun(t, 5)
		if again.resume(t, dir); again.Level != want {
			t.Errorf("saved on %v, the checkpoint says %q", l, again.Level)
		}
	}
}

func TestResumedRunEqualsTheUninterrupted(t *testing.T) {
	whole := newRun(t, 5)
	whole.train(t, 10)
	for _, stop := range []int{0, 1, 3, 4, 9} {
		dir := t.TempDir()
		first := newRun(t, 5)
		first.Draws = first.env.Draws()
		first.train(t, stop)
		first.Extra = json.RawMessage(`{"note":"a"}`)
		save1(t, dir, first)

		second := newRun(t, 5)
		second.Optimizer.SetLR(7)
		second.resume(t, dir)
		if second.Step != stop || second.Loader != first.Loader || second.Optimizer.LR() != 1e-2 {
			t.Fatalf("resumed as %+v from %+v", second.State, first.State)
		}
		var extra struct{ Note string }
		if err := json.Unmarshal(second.Extra, &extra); err != nil || extra.Note != "a" {
			t.Errorf("extra %s, %v", second.Extra, err)
		}
		second.train(t, 10)
		if !slices.Equal(second.values(), whole.values()) {
			t.Errorf("stopped after step %d and resumed, it goes another way", stop)
		}
	}
}

func TestSavingDoesNotMoveTheRun(t *testing.T) {
	a, b := newRun(t, 5), newRun(t, 5)
	a.train(t, 6)
	dir := t.TempDir()
	for n := range 6 {
		b.train(t, n+1)
		save1(t, dir, b)
	}
	if !slices.Equal(a.values(), b.values()) || a.Draws != b.Draws {
		t.Error("a run that saves differs from one that does not")
	}
	host, err := tensor.Open("cpu") // where Save works, and most programs train
	check(t, err)
	draws := host.Draws()
	path := save1(t, dir, b)
	check(t, Load(path, &b.State))
	if now := host.Draws(); now != draws {
		t.Errorf("saving and loading drew %d numbers of the root's path", now-draws)
	}
	listed := func() (names []string) {
		paths, err := List(dir)
		check(t, err)
		for _, p := range paths {
			names = append(names, strings.TrimPrefix(p, filepath.Join(dir, "checkpoint-")))
		}
		return names
	}
	if got := listed(); !slices.Equal(got, []string{"6", "5", "4", "3", "2", "1"}) {
		t.Errorf("checkpoints %v", got)
	}
	for _, keep := range []int{9, 2} {
		check(t, Prune(dir, keep))
	}
	if got := listed(); !slices.Equal(got, []string{"6", "5"}) {
		t.Errorf("checkpoints %v after pruning, want 6 and 5", got)
	}
}

// TestUnreadableFolder: what cannot be listed is not taken for a folder without checkpoints.
func TestUnreadableFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(path, nil, 0o666))
	if _, err := List(path); err == nil {
		t.Error("a file was listed")
	}
	if err := Prune(path, 1); err == nil {
		t.Error("a file was pruned")
	}
	if _, _, err := Latest(path, &newRun(t, 5).State); err == nil || errors.Is(err, ErrNone) {
		t.Errorf("got %v", err)
	}
}

func TestSaveReplacesACheckpointOfTheSameStep(t *testing.T) {
	dir, r := t.TempDir(), newRun(t, 5)
	save1(t, dir, r)
	r.train(t, 2)
	r.Step = 0
	path := save1(t, dir, r)
	other := newRun(t, 5)
	if err := Load(path, &other.State); err != nil || !slices.Equal(other.values(), r.values()) {
		t.Errorf("%v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the folder holds %v", entries)
	}
}

// damages are ways to spoil a checkpoint.
var damages = map[string]struct {
	do   func(t *testing.T, path string)
	want string
}{
	"model cut":                 {cut(ModelFile, -1), "and does not match its checksum"},
	"model empty":               {cut(ModelFile, 0), ModelFile + " has 0 bytes of "},
	"model, a byte flipped":     {flip(ModelFile, -5), "does not match its checksum"},
	"model, header flipped":     {flip(ModelFile, 20), "does not match its checksum"},
	"model missing":             {remove(ModelFile), "model.safetensors"},
	"model a folder":            {folderFor(ModelFile), "model.safetensors"},
	"optimizer cut":             {cut(optimizerFile, -1), "does not match its checksum"},
	"optimizer flipped":         {flip(optimizerFile, -1), "does not match its checksum"},
	"optimizer missing":         {remove(optimizerFile), "optimizer.safetensors"},
	"manifest cut":              {cut(manifestFile, -3), "does not match its checksum"},
	"manifest, a digit changed": {edit(manifestFile, `"step": 2`, `"step": 3`), "does not match its checksum"},
	"manifest missing":          {remove(manifestFile), "manifest.json"},
	"manifest no JSON":          {signed(manifestFile, func(string) string { return "{" }), "unexpected end"},
	"negative step":             {signed(manifestFile, func(s string) string { return strings.Replace(s, `"step": `, `"step": -`, 1) }), "which no run reaches"},
	"absurd epoch": {signed(manifestFile, func(s string) string {
		return regexp.MustCompile(`"epoch": \d+`).ReplaceAllString(s, `"epoch": 9223372036854775807`)
	}), "which no run reaches"},
	"model no safetensors": {signed(ModelFile, func(s string) string { return s[:len(s)-1] }), "model.safetensors"},
	"sums cut":             {cut(sumsFile, 30), "is no checksum"},
	"sums without a line":  {edit(sumsFile, manifestFile, "other.json"), "no line for manifest.json"},
	"sums flipped":         {flip(sumsFile, 3), "does not match its checksum"},
	"sums empty":           {cut(sumsFile, 0), "no line for"},
	"sums missing":         {remove(sumsFile), "SHA256SUMS"},
	"all files gone":       {func(t *testing.T, path string) { check(t, os.RemoveAll(path)); check(t, os.Mkdir(path, 0o777)) }, "SHA256SUMS"},
	"a file in its place": {func(t *testing.T, path string) {
		check(t, os.RemoveAll(path))
		check(t, os.WriteFile(path, nil, 0o666))
	}, "SHA256SUMS"},
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func change(name string, f func(b []byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		b, err := os.ReadFile(filepath.Join(path, name))
		check(t, err)
		check(t, os.WriteFile(filepath.Join(path, name), f(b), 0o666))
	}
}

// cut keeps n bytes, or drops -n.
func cut(name string, n int) func(*testing.T, string) {
	return change(name, func(b []byte) []byte {
		if n < 0 {
			return b[:len(b)+n]
		}
		return b[:n]
	})
}

func flip(name string, i int) func(*testing.T, string) {
	return change(name, func(b []byte) []byte {
		if i < 0 {
			i += len(b)
		}
		b[i] ^= 1
		return b
	})
}

func edit(name, from, to string) func(*testing.T, string) {
	return change(name, func(b []byte) []byte { return []byte(strings.Replace(string(b), from, to, 1)) })
}

func remove(name string) func(*testing.T, string) {
	return func(t *testing.T, path string) { check(t, os.Remove(filepath.Join(path, name))) }
}

func folderFor(name string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		remove(name)(t, path)
		check(t, os.Mkdir(filepath.Join(path, name), 0o777))
	}
}

// signed changes a file and its checksum with it.
func signed(name string, f func(s string) string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		sum := func() string {
			m, err := hostmem.MapFile(filepath.Join(path, name))
			check(t, err)
			defer m.Close()
			return sumOf(m.Bytes())
		}
		before := sum()
		change(name, func(b []byte) []byte { return []byte(f(string(b))) })(t, path)
		edit(sumsFile, before, sum())(t, path)
	}
}

func TestDamagedCheckpointFallsBack(t *testing.T) {
	template, r := t.TempDir(), newRun(t, 5)
	r.train(t, 1)
	save1(t, template, r)
	old := r.values()
	r.train(t, 2)
	save1(t, template, r)
	mapped := hostmem.Mapped().Files
	for name, d := range damages {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			check(t, os.CopyFS(dir, os.DirFS(template)))
			newest := filepath.Join(dir, "checkpoint-2")
			d.do(t, newest)

			direct := newRun(t, 5)
			before := direct.values()
			var damage *CorruptError
			if err := Load(newest, &direct.State); !errors.As(err, &damage) || !strings.Contains(err.Error(), d.want) || !strings.Contains(err.Error(), newest) || strings.Contains(err.Error(), "\n") {
				t.Errorf("Load: %v", err)
			}
			if !slices.Equal(direct.values(), before) || direct.Step != 0 {
				t.Error("a failed Load changed the run")
			}

			back := newRun(t, 5)
			path, warnings, err := Latest(dir, &back.State)
			if err != nil || path != filepath.Join(dir, "checkpoint-1") || len(warnings) != 1 || !strings.Contains(warnings[0].Error(), newest) {
				t.Fatalf("Latest: %q, %v, %v", path, warnings, err)
			}
			if back.Step != 1 || !slices.Equal(back.values(), old) {
				t.Error("it is not the checkpoint before")
			}
		})
	}
	if now := hostmem.Mapped().Files; now != mapped {
		t.Errorf("%d bytes of files are mapped, %d before", now, mapped)
	}
}

func TestAllDamaged(t *testing.T) {
	dir, r := t.TempDir(), newRun(t, 5)
	for step := range 3 {
		r.train(t, step+1)
		cut(ModelFile, 10)(t, save1(t, dir, r))
	}
	_, warnings, err := Latest(dir, &r.State)
	var damage *CorruptError
	if !errors.As(err, &damage) || damage.Path != filepath.Join(dir, "checkpoint-3") || len(warnings) != 2 {
		t.Errorf("got %v, warnings %v", err, warnings)
	}
}

func TestNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	check(t, os.Mkdir(filepath.Join(dir, "checkpoint-x"), 0o777))
	check(t, os.Mkdir(filepath.Join(dir, "checkpoint-01"), 0o777))
	check(t, os.Mkdir(filepath.Join(dir, "checkpoint--1"), 0o777))
	for _, d := range []string{dir, filepath.Join(dir, "none")} {
		if _, _, err := Latest(d, &newRun(t, 5).State); !errors.Is(err, ErrNone) {
			t.Errorf("got %v", err)
		}
	}
	if err := Load(filepath.Join(dir, "none"), &newRun(t, 5).State); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

// TestScaler: the scale of losses is part of a run that has one.
func TestScaler(t *testing.T) {
	dir, r := t.TempDir(), newRun(t, 5)
	plain := save1(t, dir, r)
	r.Step, r.Scaler = 1, optim.NewLossScaler(optim.LossScalerConfig{})
	want := optim.LossScalerState{Scale: 96, Good: 7}
	check(t, r.Scaler.Load(want))
	path := save1(t, dir, r)

	with, without := newRun(t, 5), newRun(t, 5)
	with.Scaler = optim.NewLossScaler(optim.LossScalerConfig{Init: 2})
	fresh := with.Scaler.State()
	var mismatch *MismatchError
	if err := Load(path, &without.State); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "loss scaler") {
		t.Errorf("into a run without one: %v", err)
	}
	if err := Load(plain, &with.State); !errors.As(err, &mismatch) || with.Scaler.State() != fresh {
		t.Errorf("of a run without one: %v, %+v", err, with.Scaler.State())
	}
	if err := Load(path, &with.State); err != nil || with.Scaler.State() != want {
		t.Errorf("%v, %+v", err, with.Scaler.State())
	}
	signed(manifestFile, func(s string) string { return strings.Replace(s, `"scale": 96`, `"scale": -1`, 1) })(t, path)
	var damage *CorruptError
	if err := Load(path, &with.State); !errors.As(err, &damage) || !strings.Contains(err.Error(), "a scale of -1") || with.Scaler.State() != want {
		t.Errorf("damaged: %v, %+v", err, with.Scaler.State())
	}
}

func TestCheckpointOfSomethingElse(t *testing.T) {
	dir, r := t.TempDir(), newRun(t, 5)
	r.train(t, 1)
	save1(t, dir, r)
	r.train(t, 2)
	path := save1(t, dir, r)
	wide := newRun(t, 6)
	deep := newRun(t, 5)
	deep.Model = append(deep.Model.(nn.Sequential), nn.NewLinear(deep.env, 2, 2))
	deep.Optimizer = nil
	plain := newRun(t, 5)
	plain.Optimizer = nil
	sgd := newRun(t, 5)
	sgd.Optimizer = optim.NewSGD(nn.Params(sgd.Model), optim.SGDConfig{LR: 1, Momentum: 0.9})
	version := filepath.Join(t.TempDir(), "checkpoint-2")
	check(t, os.CopyFS(version, os.DirFS(path)))
	signed(manifestFile, func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 9`, 1) })(t, version)
	format := filepath.Join(t.TempDir(), "checkpoint-2")
	check(t, os.CopyFS(format, os.DirFS(path)))
	signed(manifestFile, func(s string) string { return strings.Replace(s, formatName, "other", 1) })(t, format)
	for name, c := range map[string]struct {
		r    *run
		path string
		want string
	}{
		"wider":           {wide, path, "it has 0.weight f32[5 3] where the model has 0.weight f32[6 3]"},
		"deeper":          {deep, path, "it has nothing more where the model has 5.weight f32[2 2]"},
		"no optimizer":    {plain, path, "one of checkpoint and program has an optimizer"},
		"other optimizer": {sgd, path, "optimizer state"},
		"version":         {newRun(t, 5), version, "version 9; this program reads"},
		"format":          {newRun(t, 5), format, `format "other"`},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.r.values()
			var mismatch *MismatchError
			if err := Load(c.path, &c.r.State); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.path) {
				t.Errorf("Load: %v", err)
			}
			if !slices.Equal(c.r.values(), before) || c.r.Step != 0 {
				t.Error("a failed Load changed the run")
			}
			if _, warnings, err := Latest(filepath.Dir(c.path), &c.r.State); !errors.As(err, &mismatch) || len(warnings) != 0 {
				t.Errorf("Latest: %v, %v", warnings, err)
			}
		})
	}
}

// full is a disk with room for so many bytes.
type full struct{ room int64 }

type file struct {
	io.Writer
	io.Closer
}

func (f *full) create(path string) (io.WriteCloser, error) {
	out, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return file{&testutil.FailingWriter{W: counter{f, out}, N: f.room}, out}, nil
}

type counter struct {
	f *full
	w io.Writer
}

func (c counter) Write(p []byte) (int, error) {
	c.f.room -= int64(len(p))
	return c.w.Write(p)
}

func TestFullDiskLeavesWhatWasThere(t *testing.T) {
	dir, r := t.TempDir(), newRun(t, 5)
	save1(t, dir, r)
	want := r.values()
	r.train(t, 2)
	size := int64(0)
	check(t, filepath.WalkDir(save1(t, t.TempDir(), r), func(_ string, e fs.DirEntry, err error) error {
		if info, err := e.Info(); err == nil && !e.IsDir() {
			size += info.Size()
		}
		return err
	}))
	for _, step := range []int{0, 2} { // in place of the old one, and beside it
		r.Step = step
		for room := int64(0); room < size; room += 97 {
			if _, err := save(dir, &r.State, (&full{room}).create); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("with room for %d of %d bytes: %v", room, size, err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Fatalf("left behind: %v, %v", entries, err)
			}
		}
	}
	back := newRun(t, 5)
	if _, warnings, err := Latest(dir, &back.State); err != nil || len(warnings) > 0 || !slices.Equal(back.values(), want) {
		t.Errorf("%v, %v", warnings, err)
	}
	if _, err := save(dir, &r.State, (&full{size}).create); err != nil {
		t.Errorf("with room for all: %v", err)
	}
}

func TestUnwritableFolder(t *testing.T) {
	r := newRun(t, 5)
	path := filepath.Join(t.TempDir(), "file")
	check(t, os.WriteFile(path, nil, 0o666))
	if _, err := Save(path, &r.State); err == nil {
		t.Error("saved into a file")
	}
	r.Step = -1
	if _, err := Save(t.TempDir(), &r.State); err == nil || !strings.Contains(err.Error(), "step -1") {
		t.Errorf("got %v", err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"format":"warpline-checkpoint","version":1,"step":1,"model":[{"name":"a","dtype":"f32","shape":[1]}]}`), []byte("x"))
	f.Add([]byte(`{"format":"warpline-checkpoint","version":1,"model":[],"optimizers":{"../a":{"lr":1,"counters":{"steps":-1}},"b":{}}}`), []byte("x"))
	f.Fuzz(func(t *testing.T, manifest, sums []byte) {
		dir := t.TempDir()
		for name, b := range map[string][]byte{manifestFile: manifest, ModelFile: {}, sumsFile: append([]byte(sumOf(manifest)+"  manifest.json\n"+sumOf(nil)+"  model.safetensors\n"), sums...)} {
			check(t, os.WriteFile(filepath.Join(dir, name), b, 0o666))
		}
		if _, err := open(dir); err == nil {
			t.Error("a checkpoint without a model opens")
		}
	})
}
