package nn

import (
	"cmp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/tensor"
)

// LoRA changes the product of a [Linear] by one of a low rank: x·Wᵀ + Scale·(x·Aᵀ)·Bᵀ (Hu et al., 2021).
type LoRA struct {
	A       *tensor.Tensor `nn:"lora_A"` // [rank, in]
	B       *tensor.Tensor `nn:"lora_B"` // [out, rank], 0 at first, so that the layer does what it did
	Scale   float64
	Dropout float64 // of what A is applied to, while training
}

// LoRAConfig describes [AddLoRA].
type LoRAConfig struct {
	Rank    int
	Alpha   float64 // Scale times the rank; 0 means the rank
	Dropout float64
	Match   func(path string) bool // which layers; nil: all
	Env     *tensor.Env            // that draws their start; nil: that of the weights, which has no seed
}

// AddLoRA freezes a model, and gives each [Linear] whose path matches two small matrices, which train in place of it. It
// returns the paths of these layers, in order. Matrices that are no Linear's, such as those of [MultiheadAttention] for its
// inputs, have no place for it.
func AddLoRA(model any, c LoRAConfig) (paths []string) {
	if c.Rank < 1 || !(c.Dropout >= 0 && c.Dropout <= 1) {
		tensor.Raise("nn.AddLoRA", "the rank is from 1, dropout a share", "%+v", c)
	}
	layers := linears("nn.AddLoRA", model)
	Freeze(model, true)
	for _, l := range layers {
		if c.Match != nil && !c.Match(l.path) {
			continue
		}
		needs(l.layer, "weight", l.layer.Weight)
		w := l.layer.Weight
		alpha := c.Alpha
		if alpha == 0 {
			alpha = float64(c.Rank)
		}
		env, out, in := cmp.Or(c.Env, w.Env()), w.Dim(0), w.Dim(1)
		l.layer.LoRA = &LoRA{A: env.Tidy(func(e *tensor.Env) *tensor.Tensor {
			return NewParam(e.Rand(c.Rank, in).Scale(2).AddScalar(-1).Scale(fanBound(in)).Cast(w.DType()))
		}), B: full(env, 0, out, c.Rank), Scale: alpha / float64(c.Rank), Dropout: c.Dropout}
		if w.DType() != l.layer.LoRA.B.DType() {
			Cast(l.layer.LoRA, w.DType())
		}
		paths = append(paths, l.path)
	}
	if len(paths) == 0 {
		Freeze(model, false)
		tensor.Raise("nn.AddLoRA", "see nn.Summary for paths and kinds", "none of the %d Linear layers matches", len(layers))
	}
	for range Params(model) { // which tells new ones their paths
	}
	return paths
}

// MergeLoRA adds what the small matrices have learned to the weights and takes them away; the layers compute what they did, but for
// rounding, and their weights train again. It returns their paths.
func MergeLoRA(model any) (paths []string) {
	for _, l := range linears("nn.MergeLoRA", model) {
		a := l.layer.LoRA
		if a == nil {
			continue
		}
		w := l.layer.Weight
		w.Env().NoGrad().Do(func(e *tensor.Env) *tensor.Tensor {
			w.In(e).AddInPlace(a.B.In(e).MatMul(a.A.In(e).Scale(a.Scale)))
			return nil
		})
		l.layer.LoRA = nil
		paths = append(paths, l.path)
	}
	if len(paths) > 0 {
		Freeze(model, false)
	}
	return paths
}

// linear is a layer and its path.
type linear struct {
	path  string
	layer *Linear
}

// linears are those of a model, in the order of their paths.
func linears(op string, model any) (all []linear) {
	for m, path := range walk(op, model).modules {
		if l, ok := m.(*Linear); ok {
			all = append(all, linear{path, l})
		}
	}
	slices.SortFunc(all, func(a, b linear) int { return strings.Compare(a.path, b.path) })
	return all
}

// add is y, of x, with the change.
func (a *LoRA) add(x, y *tensor.Tensor) *tensor.Tensor {
	small := x.Dropout(a.Dropout).Linear(a.A, nil).Linear(a.B, nil)
	return y.AddScaled(small, a.Scale)
}

// activated applies an activation of the fused operations.
func activated(x *tensor.Tensor, act tensor.Act) *tensor.Tensor {
	switch act {
	case tensor.ActReLU:
		return x.ReLU()
	case tensor.ActGELU:
		return x.GELU()
	case tensor.ActGELUTanh:
		return x.GELUTanh()
	case tensor.ActSiLU:
		return x.SiLU()
	}
	return x
}
