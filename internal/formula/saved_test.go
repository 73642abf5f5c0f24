package formula

import (
	"encoding/json"
	"os"
	"testing"
)

// saved is a row of testdata/saved.json, which bench/plan/saved.py makes: the bytes of the storages that PyTorch's autograd
// saves, without parameters.
type saved struct {
	Model, AMP                         string
	Batch, Context                     int
	Layer, Outside, Casts, All, Params int64
}

// tiny are the decoders of the script.
var tiny = map[string]*Decoder{
	"llama": with(llama(1, 256, 8, 2, 704, 1000, 128), as),
	"qwen3": with(llama(1, 256, 8, 4, 704, 1000, 128), func(d *Decoder) { d.QKNorm, d.HeadWidth, d.Untied = true, 64, false }),
	"gpt2":  {Layers: 1, Width: 256, Heads: 8, Vocab: 1000, Context: 128, Activation: NewOps, LayerNorm: true, Bias: true, Positions: true},
}

func rows(t *testing.T) []saved {
	b, err := os.ReadFile("testdata/saved.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []saved
	if err := json.Unmarshal(b, &all); err != nil || len(all) < 15 {
		t.Fatalf("%d rows, %v", len(all), err)
	}
	return all
}

// setup of a row; "pure" is weights of two bytes.
func (r *saved) setup() Setup {
	s := Setup{AMP: AMP(r.AMP), Batch: r.Batch, Context: r.Context, Forward: true, Style: Torch}
	if r.AMP == "pure" {
		s.AMP, s.Weights16 = BF16, true
	} else if r.AMP == "off" {
		s.AMP = Off
	}
	return s
}

func TestSavedByDecoders(t *testing.T) {
	seen := 0
	for _, r := range rows(t) {
		d := tiny[r.Model]
		if d == nil {
			continue
		}
		seen++
		s, c, err := counted(d, r.setup())
		if err != nil {
			t.Fatal(err)
		}
		slack := int64(0)
		if d.LayerNorm && s.Weights16 {
			slack = 8 * int64(r.Batch*r.Context) // statistics in two bytes, which only PyTorch's CPU has
		}
		if off := c.layer - r.Layer; off < 0 || off > slack {
			t.Errorf("%s, %s: a layer keeps %d bytes, PyTorch saves %d: %+d", r.Model, r.AMP, c.layer, r.Layer, off)
		}
		outside := c.kept - c.layer + c.logits + 4 // the loss
		if off := outside - r.Outside; off < 0 || off > slack/2 {
			t.Errorf("%s, %s: %d bytes outside of layers, PyTorch saves %d: %+d", r.Model, r.AMP, outside, r.Outside, off)
		}
		two := with(*d, func(d *Decoder) { d.Layers = 2 })
		if n := two.Parameters(); n != r.Params {
			t.Errorf("%s: %d parameters, PyTorch %d", r.Model, n, r.Params)
		}
		if casts := 2 * d.matrices(); r.AMP == "bf16" && casts != r.Casts {
			t.Errorf("%s: casts of a layer %d bytes, PyTorch %d", r.Model, casts, r.Casts)
		}
	}
	if seen != 9 {
		t.Errorf("%d rows", seen)
	}
}

func TestSavedByOthers(t *testing.T) {
	seen := 0
	for _, r := range rows(t) {
		var m Model = &MLP{[]int{784, 512, 256, 10}}
		if r.Model != "mlp" {
			p, err := Find(r.Model)
			if err != nil || r.All == 0 {
				continue
			}
			m = p.Model
		}
		seen++
		_, c, err := counted(m, r.setup())
		if err != nil {
			t.Fatal(err)
		}
		within(t, r.Model+", "+r.AMP+": kept", float64(c.kept), float64(r.All), .0005)
		if r.Params != 0 && m.Parameters() != r.Params {
			t.Errorf("%s: %d parameters, PyTorch %d", r.Model, m.Parameters(), r.Params)
		}
	}
	if seen != 6 {
		t.Errorf("%d rows", seen)
	}
}
