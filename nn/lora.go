package nn

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/sorting"
	"github.com/warpline-ml/warpline/tensor"
)

// LoRA changes the product of a [Linear] by one of a low rank: x·Wᵀ + Scale·(x·Aᵀ)·Bᵀ (Hu et al., 2021). Of a [Conv2d] A is a
// convolution like its own with few results, and B one of 1×1.
type LoRA struct {
	A       *tensor.Tensor `nn:"lora_A"` // [rank, in], of a convolution [rank, in, kernel, kernel]
	B       *tensor.Tensor `nn:"lora_B"` // [out, rank], of a convolution [out, rank, 1, 1]; 0 at first, so that the layer does what it did
	Scale   float64
	Dropout float64 // of what A is applied to, while training
	Folded  bool    // the weight has it already; see [FoldLoRA]
}

// LoRAConfig describes [AddLoRA].
type LoRAConfig struct {
	Rank    int
	Alpha   float64 // Scale times the rank; 0 means the rank
	Dropout float64
	Match   func(path string) bool // which layers, such as [Matching]; nil: all
	Convs   bool                   // those of one group, too
	Env     *tensor.Env            // that draws their start; nil: that of the weights, which has no seed
}

// AddLoRA freezes a model, and gives each [Linear], and with Convs each [Conv2d], whose path matches two small matrices, which
// train in place of it, as the peft package does. It returns the paths of these layers, in order. Matrices that are no layer's, such
// as those of [MultiheadAttention] for its inputs, have no place for it.
func AddLoRA(model any, c LoRAConfig) (paths []string) {
	if c.Rank < 1 || !(c.Dropout >= 0 && c.Dropout <= 1) {
		tensor.Raise("nn.AddLoRA", "the rank is from 1, dropout a share", "%+v", c)
	}
	layers := adaptable("nn.AddLoRA", model, c.Convs)
	Freeze(model, true)
	for _, l := range layers {
		if c.Match != nil && !c.Match(l.path) {
			continue
		}
		needs(l.layer, "weight", l.weight)
		*l.lora = c.start(l.weight)
		paths = append(paths, l.path)
	}
	if len(paths) == 0 {
		Freeze(model, false)
		tensor.Raise("nn.AddLoRA", "see nn.Summary for paths and kinds", "none of the %d layers that can have it matches", len(layers))
	}
	for range Params(model) { // which tells new ones their paths
	}
	return paths
}

// start is what stands beside a weight at first.
func (c LoRAConfig) start(w *tensor.Tensor) *LoRA {
	env, in, out := cmp.Or(c.Env, w.Env()), slices.Clone(w.Shape()), slices.Clone(w.Shape())
	in[0], out[1] = c.Rank, c.Rank
	for i := 2; i < len(out); i++ {
		out[i] = 1
	}
	fan := w.Size() / max(w.Dim(0), 1)
	a := &LoRA{A: env.Tidy(func(e *tensor.Env) *tensor.Tensor {
		return NewParam(e.Rand(in...).Scale(2).AddScalar(-1).Scale(fanBound(fan)).Cast(w.DType()))
	}), B: full(env, 0, out...), Scale: cmp.Or(c.Alpha, float64(c.Rank)) / float64(c.Rank), Dropout: c.Dropout}
	if w.DType() != a.B.DType() {
		Cast(a, w.DType())
	}
	return a
}

// Matching tells paths that one of the patterns matches, as in [path.Match], or whose module one does. A * goes over dots.
func Matching(patterns ...string) func(of string) bool {
	return func(of string) bool {
		for i := range len(of) + 1 {
			if i < len(of) && of[i] != '.' {
				continue
			}
			for _, p := range patterns {
				if ok, err := path.Match(p, of[:i]); ok && err == nil {
					return true
				}
			}
		}
		return false
	}
}

// MergeLoRA adds what the small matrices have learned to the weights and takes them away; the layers compute what they did, but for
// rounding, and their weights train again. It returns their paths.
func MergeLoRA(model any) (paths []string) {
	for _, l := range adaptable("nn.MergeLoRA", model, true) {
		if *l.lora == nil {
			continue
		}
		l.fold(true)
		*l.lora = nil
		paths = append(paths, l.path)
	}
	if len(paths) > 0 {
		Freeze(model, false)
	}
	return paths
}

// FoldLoRA adds the small matrices to the weights, in which layers then compute in one product, or with false takes them out again, to
// train on; but for rounding they compute the same. A model is saved unfolded, or merged. It returns the paths of these layers.
func FoldLoRA(model any, in bool) (paths []string) {
	for _, l := range adaptable("nn.FoldLoRA", model, true) {
		if *l.lora != nil {
			l.fold(in)
			paths = append(paths, l.path)
		}
	}
	return paths
}

// adapter is a layer that can have a LoRA, and its path.
type adapter struct {
	path   string
	layer  any
	weight *tensor.Tensor
	lora   **LoRA
}

// adaptable are those of a model, in the order of their paths.
func adaptable(op string, model any, convs bool) (all []adapter) {
	for m, path := range walk(op, model).modules {
		switch l := m.(type) {
		case *Linear:
			all = append(all, adapter{path, l, l.Weight, &l.LoRA})
		case *Conv2d:
			if convs && l.Groups <= 1 {
				all = append(all, adapter{path, l, l.Weight, &l.LoRA})
			}
		}
	}
	sorting.By(all, func(a, b adapter) int { return strings.Compare(a.path, b.path) })
	return all
}

// fold puts what stands beside a weight into it, or takes it out; what is so already stays.
func (l *adapter) fold(in bool) {
	a, w := *l.lora, l.weight
	if a.Folded == in {
		return
	}
	scale := a.Scale
	if !in {
		scale = -scale
	}
	w.Env().NoGrad().Do(func(e *tensor.Env) *tensor.Tensor {
		rank := a.A.Dim(0)
		product := a.B.In(e).Reshape(-1, rank).MatMul(a.A.In(e).Reshape(rank, -1).Scale(scale))
		w.In(e).AddInPlace(product.Reshape(w.Shape()...))
		return nil
	})
	a.Folded = in
}

// beside tells whether there is something to add to a layer's own results.
func (a *LoRA) beside() bool { return a != nil && !a.Folded }

// add is y, of x, with the change.
func (a *LoRA) add(x, y *tensor.Tensor) *tensor.Tensor {
	small := x.Dropout(a.Dropout).Linear(a.A, nil).Linear(a.B, nil)
	return y.AddScaled(small, a.Scale)
}

// addConv is y, of x by a convolution, with the change.
func (a *LoRA) addConv(x, y *tensor.Tensor, c tensor.Conv) *tensor.Tensor {
	small := x.Dropout(a.Dropout).Conv2d(a.A, nil, c).Conv2d(a.B, nil, tensor.Conv{})
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
