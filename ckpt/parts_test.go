package ckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/tensor"
)

// TestParts: a program that predicts reads what a run added, makes the model that it describes, and takes the weights
// without an optimizer.
func TestParts(t *testing.T) {
	dir, r := t.TempDir(), newRun(t, 5)
	r.train(t, 2)
	r.Extra = json.RawMessage(`{"hidden": 5}`)
	path := save1(t, dir, r)
	for _, from := range []string{dir, path} {
		c, err := Open(from)
		if err != nil {
			t.Fatal(err)
		}
		var extra struct{ Hidden int }
		if err := json.Unmarshal(c.Extra(), &extra); err != nil || c.Step() != 2 || c.Path() != path || len(c.Damaged()) != 0 {
			t.Fatalf("%s: step %d, extra %s: %v", c.Path(), c.Step(), c.Extra(), err)
		}
		p := newRun(t, extra.Hidden)
		if err := c.Model(p.Model); err != nil || !slices.Equal(p.values(), r.values()) {
			t.Errorf("the model: %v", err)
		}
		if err := c.Optimizer("", p.Optimizer); err != nil || p.Optimizer.LR() != r.Optimizer.LR() {
			t.Errorf("the optimizer: %v", err)
		}
		var mismatch *MismatchError
		if err := c.Optimizer("critic", p.Optimizer); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), `"critic"`) {
			t.Errorf("an optimizer that is not there: %v", err)
		}
		if err := c.Model(newRun(t, 6).Model); !errors.As(err, &mismatch) {
			t.Errorf("another model: %v", err)
		}
		check(t, c.Close())
	}
	check(t, os.Truncate(filepath.Join(path, ModelFile), 9))
	var damage *CorruptError
	if _, err := Open(path); !errors.As(err, &damage) {
		t.Errorf("a damaged checkpoint: %v", err)
	}
	if _, err := Open(dir); !errors.As(err, &damage) {
		t.Errorf("a folder with a damaged checkpoint: %v", err)
	}
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNone) {
		t.Errorf("a folder without checkpoints: %v", err)
	}
}

// TestPartsFallBack: of a run's folder the newest checkpoint that is whole is opened, and the damaged ones are told.
func TestPartsFallBack(t *testing.T) {
	dir, r := t.TempDir(), newRun(t, 5)
	r.train(t, 1)
	older := save1(t, dir, r)
	r.train(t, 2)
	check(t, os.Truncate(filepath.Join(save1(t, dir, r), manifestFile), 3))
	c, err := Open(dir)
	if err != nil || c.Path() != older || len(c.Damaged()) != 1 {
		t.Fatalf("%+v: %v", c, err)
	}
	check(t, c.Close())
}

// TestOpenByAnyName: a run's folder may be called like a checkpoint; a checkpoint without checksums is a damaged one.
func TestOpenByAnyName(t *testing.T) {
	r := newRun(t, 5)
	r.train(t, 1)
	for _, name := range []string{"checkpoint-tests", "checkpoint-7", "checkpoint-", "run"} {
		dir := filepath.Join(t.TempDir(), name)
		path := save1(t, dir, r)
		c, err := Open(dir)
		if err != nil || c.Path() != path {
			t.Errorf("%s: %v, %v", name, c, err)
			continue
		}
		check(t, c.Close())
		check(t, os.Remove(filepath.Join(path, sumsFile)))
		var damage *CorruptError
		if _, err := Open(path); !errors.As(err, &damage) {
			t.Errorf("%s without checksums: %v", path, err)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "checkpoint-3")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a checkpoint that is not there: %v", err)
	}
}

// TestUnreadableIsNotDamaged: what the system refuses to read is told as it is, and no older checkpoint is taken for it.
func TestUnreadableIsNotDamaged(t *testing.T) {
	for err, want := range map[error]bool{
		&fs.PathError{Op: "open", Path: "a", Err: syscall.EACCES}:  true,
		&fs.PathError{Op: "open", Path: "a", Err: syscall.EMFILE}:  true,
		&fs.PathError{Op: "read", Path: "a", Err: syscall.EIO}:     true,
		fmt.Errorf("map: %w", syscall.ENOMEM):                      true,
		&fs.PathError{Op: "open", Path: "a", Err: syscall.ENOENT}:  false,
		&fs.PathError{Op: "open", Path: "a", Err: syscall.ENOTDIR}: false,
		&fs.PathError{Op: "read", Path: "a", Err: syscall.EISDIR}:  false,
		errors.New("SHA256SUMS has no line for it"):                false,
	} {
		if ofSystem(err) != want {
			t.Errorf("%v is of the system: %v, want %v", err, !want, want)
		}
	}

	dir, r := t.TempDir(), newRun(t, 5)
	r.train(t, 1)
	save1(t, dir, r)
	r.train(t, 2)
	newest := save1(t, dir, r)
	for _, name := range []string{sumsFile, manifestFile, ModelFile, optimizerFile} {
		path := filepath.Join(newest, name)
		check(t, os.Rename(path, path+".away"))
		check(t, os.Symlink(name, path)) // a loop, which root cannot read either
		var refused *fs.PathError
		_, one := Open(newest)
		_, all := Open(dir)
		_, warnings, latest := Latest(dir, &r.State)
		for of, err := range map[string]error{"Open": one, "Open of the run": all, "Latest": latest, "Load": Load(newest, &r.State)} {
			var damage *CorruptError
			if !errors.As(err, &refused) || errors.As(err, &damage) || len(warnings) > 0 {
				t.Errorf("%s of an unreadable %s: %v", of, name, err)
			}
		}
		check(t, os.Rename(path+".away", path))
	}
}

// TestClosed: parts are not read after Close.
func TestClosed(t *testing.T) {
	r := newRun(t, 5)
	c, err := Open(save1(t, t.TempDir(), r))
	check(t, err)
	check(t, c.Close())
	for name, err := range map[string]error{"model": c.Model(r.Model), "optimizer": c.Optimizer("", r.Optimizer), "no optimizer": c.Optimizer("x", r.Optimizer)} {
		if !errors.Is(err, fs.ErrClosed) || !strings.Contains(err.Error(), c.Path()) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, c.Close())
}

// two is a run with two optimizers, as of a generator and its critic.
func two(t *testing.T) *run {
	r := newRun(t, 5)
	m := r.Model.(nn.Sequential)
	r.Optimizer = nil
	r.Optimizers = map[string]optim.Optimizer{
		"first": optim.NewAdamW(nn.Params(m[0]), optim.AdamWConfig{LR: 1e-2}),
		"last":  optim.NewSGD(nn.Params(m[4]), optim.SGDConfig{LR: 1e-1, Momentum: 0.9}),
	}
	return r
}

// step makes one step of both.
func (r *run) both(t *testing.T) {
	t.Helper()
	m := r.Model.(nn.Sequential)
	m.Forward(tensor.From(r.env, []float32{1, 2, 3, 4, 5, 6}, 2, 3)).Square().Sum().Backward()
	r.Optimizers["first"].Step()
	r.Optimizers["last"].Step()
}

// TestOptimizers: several optimizers are kept and come back, all or none.
func TestOptimizers(t *testing.T) {
	dir, r := t.TempDir(), two(t)
	r.both(t)
	r.Optimizers["last"].SetLR(0.25)
	save1(t, dir, r)
	s := two(t)
	s.resume(t, dir)
	s.env.SetDraws(r.env.Draws())
	if got := s.Optimizers["last"].LR(); got != 0.25 {
		t.Errorf("a rate of %v", got)
	}
	r.both(t)
	s.both(t)
	if !slices.Equal(r.values(), s.values()) {
		t.Error("the run goes on elsewhere")
	}

	other := two(t)
	other.both(t)
	before, counters := other.values(), other.Optimizers["first"].Counters()
	last := other.Optimizers["last"]
	other.Optimizers["last"] = optim.NewAdam(nn.Params(other.Model.(nn.Sequential)[4]), optim.AdamWConfig{})
	var mismatch *MismatchError
	moments := func() (all []float64) {
		for _, m := range other.Optimizers["first"].State() {
			all = append(all, m.Floats()...)
		}
		return all
	}
	were := moments()
	if _, _, err := Latest(dir, &other.State); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), `optimizer "last"`) {
		t.Errorf("another optimizer: %v", err)
	}
	if !slices.Equal(before, other.values()) || !slices.Equal(were, moments()) || len(other.Optimizers["first"].Counters()) != len(counters) {
		t.Error("a failed Load changed the run")
	}
	other.Optimizers["last"] = last
	other.Optimizers["third"] = last
	if _, _, err := Latest(dir, &other.State); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), `"third"`) {
		t.Errorf("one optimizer more: %v", err)
	}
	delete(other.Optimizers, "third")
	delete(other.Optimizers, "last")
	if _, _, err := Latest(dir, &other.State); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), `"last"`) {
		t.Errorf("one optimizer less: %v", err)
	}
	for _, name := range []string{"", "a/b", "..", "A b", strings.Repeat("n", 65)} {
		bad := two(t)
		bad.Optimizers = map[string]optim.Optimizer{name: bad.Optimizers["last"]}
		if _, err := Save(t.TempDir(), &bad.State); err == nil || !strings.Contains(err.Error(), "optimizer") {
			t.Errorf("an optimizer named %q: %v", name, err)
		}
	}
}

// TestLoadModelOfAFolder: a run's folder stands for its weights, or else for those of its newest checkpoint.
func TestLoadModelOfAFolder(t *testing.T) {
	dir, r := t.TempDir(), newRun(t, 5)
	r.train(t, 1)
	path := save1(t, dir, r)
	for _, from := range []string{dir, path} {
		p := newRun(t, 5)
		if err := LoadModel(from, p.Model); err != nil || !slices.Equal(p.values(), r.values()) {
			t.Errorf("%s: %v", from, err)
		}
	}
	final := newRun(t, 5)
	check(t, SaveModel(filepath.Join(dir, ModelFile), final.Model))
	p := newRun(t, 5)
	if err := LoadModel(dir, p.Model); err != nil || !slices.Equal(p.values(), final.values()) {
		t.Errorf("with weights of its own: %v", err)
	}
	if err := LoadModel(t.TempDir(), p.Model); err == nil || !strings.Contains(err.Error(), ModelFile) {
		t.Errorf("an empty folder: %v", err)
	}
	check(t, os.Remove(filepath.Join(dir, ModelFile)))
	check(t, os.Truncate(filepath.Join(path, ModelFile), 9))
	var damage *CorruptError
	if err := LoadModel(dir, p.Model); !errors.As(err, &damage) {
		t.Errorf("a damaged checkpoint: %v", err)
	}
}

// TestLoadFitting: what fits is loaded, what does not is listed and as it was, and nothing at all is a mistake.
func TestLoadFitting(t *testing.T) {
	env, err := tensor.Fresh(testutil.Device())
	check(t, err)
	path := filepath.Join(t.TempDir(), "m.safetensors")
	from := nn.Sequential{nn.NewLinear(env, 3, 4), nn.ReLU{}, nn.NewLinear(env, 4, 2), nn.NewLinear(env, 2, 2)}
	check(t, SaveModel(path, from))
	to := nn.Sequential{nn.NewLinear(env, 3, 4), nn.ReLU{}, nn.NewLinear(env, 4, 7), nn.ReLU{}, nn.NewLinear(env, 7, 2)}
	before := to[2].(*nn.Linear).Weight.Floats()
	left, err := LoadFitting(path, to)
	want := Left{
		Missing:    []string{"4.weight", "4.bias"},
		Unexpected: []string{"3.bias", "3.weight"},
		Other:      []string{"2.bias has shape [2], the model's [7]", "2.weight has shape [2 4], the model's [7 4]"},
	}
	slices.Sort(left.Unexpected)
	slices.Sort(left.Other)
	if err != nil || !slices.Equal(left.Missing, want.Missing) || !slices.Equal(left.Unexpected, want.Unexpected) || !slices.Equal(left.Other, want.Other) {
		t.Errorf("%+v, want %+v: %v", left, want, err)
	}
	if !slices.Equal(to[0].(*nn.Linear).Weight.Floats(), from[0].(*nn.Linear).Weight.Floats()) || !slices.Equal(to[2].(*nn.Linear).Weight.Floats(), before) {
		t.Error("what fits is not what was loaded")
	}
	if text := left.String(); !strings.Contains(text, "4.weight") || !strings.Contains(text, "3.bias") || !strings.Contains(text, "[7 4]") {
		t.Errorf("%s", text)
	}
	if left, err := LoadFitting(path, from); err != nil || left.String() != "" {
		t.Errorf("its own model: %+v, %v", left, err)
	}
	var mismatch *MismatchError
	if _, err := LoadFitting(path, nn.NewLayerNorm(env, 9)); !errors.As(err, &mismatch) {
		t.Errorf("a model of which nothing fits: %v", err)
	}
}

// TestNoModel: nothing is no model, in whatever form.
func TestNoModel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.safetensors")
	env, err := tensor.Fresh(testutil.Device())
	check(t, err)
	check(t, SaveModel(path, nn.NewLinear(env, 1, 1)))
	for name, m := range map[string]any{"nil": nil, "a nil layer": (*nn.Linear)(nil), "an interface of nothing": nn.Module(nil)} {
		before, _ := os.ReadFile(path)
		if err := SaveModel(path, m); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("SaveModel of %s: %v", name, err)
		}
		if after, _ := os.ReadFile(path); !slices.Equal(before, after) {
			t.Errorf("SaveModel of %s changed the file", name)
		}
		if err := LoadModel(path, m); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("LoadModel into %s: %v", name, err)
		}
		if _, err := Save(t.TempDir(), &State{Model: m}); err == nil || !strings.Contains(err.Error(), "nil") {
			t.Errorf("Save of %s: %v", name, err)
		}
	}
}
