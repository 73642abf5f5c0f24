package ckpt_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/internal/safetensors"
	"github.com/warpline-ml/warpline/internal/testutil"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

func fresh(t *testing.T) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh(testutil.Device())
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func parse(t *testing.T, path string) *safetensors.File {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// floats reads a tensor of PyTorch's file, independently of the package.
func floats(e *safetensors.Entry) []float64 {
	var out []float64
	for b := e.Data(); len(b) > 0; b = b[4:] {
		out = append(out, float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	}
	return out
}

func write(t *testing.T, list ...safetensors.Tensor) string {
	t.Helper()
	var b bytes.Buffer
	if err := safetensors.Write(&b, nil, list); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "weights.safetensors")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func tensorOf(e *safetensors.Entry, name string) safetensors.Tensor {
	return safetensors.Tensor{Name: name, DType: e.DType, Shape: e.Shape, Data: e.Data()}
}

const (
	gptFile    = "../model/testdata/gpt2/init/model.safetensors"
	resnetFile = "../model/testdata/resnet/init.safetensors"
	narrowFile = "../model/testdata/resnet50/init.safetensors"
)

func newGPT(env *tensor.Env) *model.GPT {
	return model.NewGPT(env, model.GPTConfig{Vocab: 113, Context: 32, Layers: 2, Heads: 4, Width: 48})
}

// holds compares a model with PyTorch's file. Products of GPT-2 are stored as [in, out].
func holds(t *testing.T, m any, want *safetensors.File) {
	t.Helper()
	for name, p := range nn.State(m) {
		e, ok := want.Lookup(name)
		if !ok || p.DType() != dtype.F32 {
			continue
		}
		got := p.Floats()
		if tr, ok := m.(ckpt.Transposer); ok && tr.Transposed(name) {
			got = p.Detach().Transpose(0, 1).Floats()
		}
		if !slices.Equal(got, floats(e)) {
			t.Errorf("%s differs from the file", name)
		}
	}
}

func TestPublishedLayoutsLoadAndComeBackByteForByte(t *testing.T) {
	env := fresh(t)
	for path, m := range map[string]any{
		gptFile:    newGPT(env),
		resnetFile: model.NewResNet(env, model.ResNetConfig{Blocks: [4]int{2, 2, 1, 1}, Planes: 8, Channels: 3, Classes: 10}),
		narrowFile: model.NewResNet(env, model.ResNetConfig{Blocks: [4]int{1, 2, 1, 1}, Bottleneck: true, Planes: 2, Channels: 3, Classes: 10}),
	} {
		if err := ckpt.LoadModel(path, m); err != nil {
			t.Fatal(err)
		}
		want := parse(t, path)
		holds(t, m, want)
		out := filepath.Join(t.TempDir(), "out.safetensors")
		if err := ckpt.SaveModel(out, m); err != nil {
			t.Fatal(err)
		}
		a, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a, b) {
			t.Errorf("%s: the file written after loading differs from PyTorch's", path)
		}
	}
}

func TestSpellingsOfPublishedFiles(t *testing.T) {
	want := parse(t, gptFile)
	wte, _ := want.Lookup("transformer.wte.weight")
	all := func(rename func(string) string, more ...safetensors.Tensor) []safetensors.Tensor {
		for i := range want.Entries {
			if n := rename(want.Entries[i].Name); n != "" {
				more = append(more, tensorOf(&want.Entries[i], n))
			}
		}
		return more
	}
	keep := func(s string) string { return s }
	short := func(s string) string { return strings.TrimPrefix(s, "transformer.") }
	mask := safetensors.Tensor{Name: "h.0.attn.bias", DType: "F32", Shape: []int{1}, Data: make([]byte, 4)}
	other := tensorOf(wte, "lm_head.weight")
	other.Data = slices.Clone(other.Data)
	other.Data[0] ^= 1
	for name, c := range map[string]struct {
		list []safetensors.Tensor
		want string
	}{
		"no prefix":      {all(short), ""},
		"of the wrapper": {all(func(s string) string { return "module." + s }), ""},
		"compiled":       {all(func(s string) string { return "_orig_mod." + s }), ""},
		"head":           {all(keep, tensorOf(wte, "lm_head.weight")), ""},
		"head only": {all(func(s string) string {
			if s == "transformer.wte.weight" {
				return "lm_head.weight"
			}
			return s
		}), ""},
		"masks":       {all(short, mask), ""},
		"untied head": {all(keep, other), "which the model ties"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newGPT(fresh(t))
			err := ckpt.LoadModel(write(t, c.list...), m)
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				holds(t, m, want)
				return
			}
			var mismatch *ckpt.MismatchError
			if !errors.As(err, &mismatch) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// encoder has an attention as PyTorch's TransformerEncoderLayer names it.
type encoder struct {
	Attention *nn.Attention `nn:"self_attn"`
	Head      *nn.Linear    `nn:"head"`
}

func TestNamesOfMultiheadAttention(t *testing.T) {
	env := fresh(t)
	from := &encoder{nn.NewAttention(env, 4, nn.AttentionConfig{Heads: 2}), nn.NewLinear(env, 4, 2)}
	path := filepath.Join(t.TempDir(), "ours")
	if err := ckpt.SaveModel(path, from); err != nil {
		t.Fatal(err)
	}
	ours, list := parse(t, path), []safetensors.Tensor(nil)
	for name, theirs := range map[string]string{
		"self_attn.c_attn.weight": "self_attn.in_proj_weight", "self_attn.c_attn.bias": "self_attn.in_proj_bias",
		"self_attn.c_proj.weight": "self_attn.out_proj.weight", "self_attn.c_proj.bias": "self_attn.out_proj.bias",
		"head.weight": "head.weight", "head.bias": "head.bias",
	} {
		e, ok := ours.Lookup(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		list = append(list, tensorOf(e, theirs))
	}
	to := &encoder{nn.NewAttention(env, 4, nn.AttentionConfig{Heads: 2}), nn.NewLinear(env, 4, 2)}
	if err := ckpt.LoadModel(write(t, list...), to); err != nil {
		t.Fatal(err)
	}
	holds(t, to, ours)
}

// tied is a model with one tensor under two names.
type tied struct {
	Embed *nn.Embedding `nn:"embed"`
	Head  *nn.Linear    `nn:"head"`
}

func newTied(env *tensor.Env) *tied {
	m := &tied{nn.NewEmbedding(env, 3, 2), nn.NewLinear(env, 2, 3)}
	m.Head.Weight = m.Embed.Weight
	return m
}

func f32(name string, shape []int, values ...float32) safetensors.Tensor {
	var b []byte
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return safetensors.Tensor{Name: name, DType: "F32", Shape: shape, Data: b}
}

func TestTiedTensorLoadsUnderEitherName(t *testing.T) {
	six, bias := []float32{1, 2, 3, 4, 5, 6}, f32("head.bias", []int{3}, 7, 8, 9)
	for _, name := range []string{"embed.weight", "head.weight"} {
		m := newTied(fresh(t))
		handle := m.Embed.Weight
		if err := ckpt.LoadModel(write(t, bias, f32(name, []int{3, 2}, six...)), m); err != nil {
			t.Fatal(err)
		}
		if got := handle.Floats(); !slices.Equal(got, []float64{1, 2, 3, 4, 5, 6}) || m.Head.Weight != handle {
			t.Errorf("%s: the handle holds %v", name, got)
		}
	}
	m := newTied(fresh(t))
	err := ckpt.LoadModel(write(t, bias, f32("embed.weight", []int{3, 2}, six...), f32("head.weight", []int{3, 2}, 1, 2, 3, 4, 5, 7)), m)
	if err == nil || !strings.Contains(err.Error(), "head.weight differs from embed.weight") {
		t.Errorf("got %v", err)
	}
}

func TestDifferencesAreListedAndNothingChanges(t *testing.T) {
	weight, bias := f32("weight", []int{2, 3}, 1, 2, 3, 4, 5, 6), f32("bias", []int{2}, 1, 2)
	ints := weight
	ints.DType = "I32"
	wide := weight
	wide.DType, wide.Shape = "I16", []int{4, 3}
	for name, c := range map[string]struct {
		list []safetensors.Tensor
		want []string
	}{
		"missing":                        {[]safetensors.Tensor{weight}, []string{"missing bias"}},
		"unexpected":                     {[]safetensors.Tensor{weight, bias, f32("extra", []int{1}, 0)}, []string{"unexpected extra"}},
		"shape":                          {[]safetensors.Tensor{f32("weight", []int{3, 2}, 1, 2, 3, 4, 5, 6), bias}, []string{"weight has shape [3 2], the model's [2 3]"}},
		"dtype":                          {[]safetensors.Tensor{ints, bias}, []string{"weight is I32, the model's f32"}},
		"no tensor's dtype, other shape": {[]safetensors.Tensor{wide, bias}, []string{"weight has shape [4 3]"}},
		"all": {[]safetensors.Tensor{f32("weight", []int{1}, 0), f32("c", nil, 0), f32("d", nil, 0), f32("e", nil, 0), f32("f", nil, 0), f32("g", nil, 0), f32("h", nil, 0)},
			[]string{"missing bias", "unexpected c, d, e, f, g and 1 more", "weight has shape [1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := nn.NewLinear(fresh(t), 3, 2)
			before := m.Weight.Floats()
			err := ckpt.LoadModel(write(t, c.list...), m)
			var mismatch *ckpt.MismatchError
			if !errors.As(err, &mismatch) {
				t.Fatalf("got %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %q", err, want)
				}
			}
			if !slices.Equal(m.Weight.Floats(), before) || strings.Contains(err.Error(), "\n") {
				t.Error("the model changed, or the error has several lines")
			}
		})
	}
}

func TestFloatingTypesConvertOnLoad(t *testing.T) {
	values := []float64{1, -0.5, 65504, 0.1, 0, math.Inf(1)}
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16, dtype.F32, dtype.F64} {
		var b []byte
		want := make([]float64, len(values))
		for i, v := range values {
			switch dt {
			case dtype.F16:
				h := dtype.F16FromFloat64(v)
				b, want[i] = binary.LittleEndian.AppendUint16(b, uint16(h)), float64(h.Float32())
			case dtype.BF16:
				h := dtype.BF16FromFloat64(v)
				b, want[i] = binary.LittleEndian.AppendUint16(b, uint16(h)), float64(h.Float32())
			case dtype.F32:
				b, want[i] = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v))), float64(float32(v))
			case dtype.F64:
				b, want[i] = binary.LittleEndian.AppendUint64(b, math.Float64bits(v)), float64(float32(v))
			}
		}
		m := nn.NewLinear(fresh(t), 3, 2)
		list := []safetensors.Tensor{{Name: "weight", DType: dt.Safetensors(), Shape: []int{2, 3}, Data: b}, f32("bias", []int{2}, 0, 0)}
		if err := ckpt.LoadModel(write(t, list...), m); err != nil {
			t.Fatal(err)
		}
		if got := m.Weight.Floats(); !slices.Equal(got, want) || m.Weight.DType() != dtype.F32 {
			t.Errorf("%s: got %v, want %v", dt, got, want)
		}
	}
}

// every has a buffer of every dtype.
type every struct {
	B map[string]*tensor.Tensor `nn:"b,buffer"`
}

func newEvery(env *tensor.Env) *every {
	m := &every{map[string]*tensor.Tensor{}}
	for _, dt := range dtype.All() {
		m.B[dt.String()] = tensor.NewBuffer(env.Arange(5).Cast(dt).Reshape(1, 5))
	}
	return m
}

func TestEveryTypeIsSavedAsItIs(t *testing.T) {
	a, b := newEvery(fresh(t)), newEvery(fresh(t))
	path := filepath.Join(t.TempDir(), "x.safetensors")
	if err := ckpt.SaveModel(path, a); err != nil {
		t.Fatal(err)
	}
	for _, v := range b.B {
		v.FillInPlace(1)
	}
	if err := ckpt.LoadModel(path, b); err != nil {
		t.Fatal(err)
	}
	for name, v := range b.B {
		if !slices.Equal(v.Floats(), a.B[name].Floats()) || v.DType().String() != name {
			t.Errorf("%s: %v", name, v)
		}
	}
}

// renamed is a model whose files call things otherwise.
type renamed struct{ *nn.Linear }

func (renamed) Path(name string) (string, bool) {
	path, ok := strings.CutPrefix(name, "fc_")
	return path, ok
}

func TestRenamer(t *testing.T) {
	m := renamed{nn.NewLinear(fresh(t), 1, 1)}
	if err := ckpt.LoadModel(write(t, f32("fc_weight", []int{1, 1}, 3), f32("fc_bias", []int{1}, 4), f32("note", nil, 5)), m); err != nil {
		t.Fatal(err)
	}
	if m.Weight.Item() != 3 || m.Bias.Item() != 4 {
		t.Errorf("got %v, %v", m.Weight, m.Bias)
	}
}

func TestDamagedModelFiles(t *testing.T) {
	whole, err := os.ReadFile(gptFile)
	if err != nil {
		t.Fatal(err)
	}
	r := testutil.Rand(t)
	m := newGPT(fresh(t))
	before := m.Transformer.WTE.Weight.Floats()
	for _, n := range []int{0, 1, 7, 8, 9, 100, len(whole) - 1, r.IntN(len(whole))} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, whole[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		if err := ckpt.LoadModel(path, m); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	if err := ckpt.LoadModel(filepath.Join(t.TempDir(), "none"), m); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	for _, head := range []string{"PK\x03\x04\x00\x00\x08\x08\x00\x00", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20"} {
		path := filepath.Join(t.TempDir(), "pytorch_model.bin")
		if err := os.WriteFile(path, []byte(head), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := ckpt.LoadModel(path, m); err == nil || !strings.Contains(err.Error(), "a file of torch.save") {
			t.Errorf("%q: %v", head, err)
		}
		if _, err := ckpt.Shapes(path); err == nil || !strings.Contains(err.Error(), "a file of torch.save") {
			t.Errorf("%q: %v", head, err)
		}
	}
	if !slices.Equal(before, m.Transformer.WTE.Weight.Floats()) {
		t.Error("the model changed")
	}
}

func TestSaveModelWhereItCannot(t *testing.T) {
	m := nn.NewLinear(fresh(t), 1, 1)
	dir := t.TempDir()
	if err := ckpt.SaveModel(dir, m); err == nil {
		t.Error("saved over a folder")
	}
	if err := ckpt.SaveModel(filepath.Join(dir, "no", "folder"), m); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestConfigOfTheGoldenFitsTheModel(t *testing.T) {
	b, err := os.ReadFile("../model/testdata/gpt2/init/config.json")
	if err != nil {
		t.Fatal(err)
	}
	var c model.GPTConfig
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if err := ckpt.LoadModel(gptFile, model.NewGPT(fresh(t), c)); err != nil {
		t.Error(err)
	}
	c.Width, c.Layers = 24, 3
	err = ckpt.LoadModel(gptFile, model.NewGPT(fresh(t), c))
	if err == nil || !strings.Contains(err.Error(), "missing transformer.h.2.") || !strings.Contains(fmt.Sprint(err), "[113 48], the model's [113 24]") {
		t.Errorf("got %v", err)
	}
}
