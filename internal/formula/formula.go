// Package formula estimates, from a model's sizes alone, the memory that a step of training takes and how long it lasts:
// closed forms for programs written elsewhere (PyTorch, Megatron, llm.c), of which only sizes are known. What is written
// with this library needs no estimate: package plan runs it on a device that computes nothing, and its bytes are exact.
//
// Everything is a pure function of its arguments. Bytes and seconds are of one device; symbols are those of Korthikanti et
// al., "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198): s tokens, b samples, h width,
// a heads, f width of the feed-forward part, V vocabulary, t tensor-parallel devices.
package formula

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Model is something to train: a *[Decoder], an *[MLP], a *[ResNet] or a [Bare] number of parameters.
type Model interface {
	Parameters() int64 // each once, shared ones too

	// FLOPs are the operations of products that training needs for one sample: three times those of the forward pass, a
	// multiply-add being two. Context is its tokens; half counts a causal attention by the half that is not masked.
	FLOPs(context int, half bool) float64

	check(s *Setup) error
	count(s *Setup) counts

	// magnitude is at least the values that there are of it and of what it keeps, in floating point, which does not overflow.
	magnitude(s *Setup) float64
}

// mostValues is what an estimate counts at most, in whole bytes.
const mostValues = 1 << 56

// countable refuses what no number of bytes would hold.
func countable(m Model, s *Setup) error {
	if n := m.magnitude(s); !(n < mostValues) {
		return advice.Failf("give the sizes of a model that somebody could train", "%.1g values are more than are counted", n)
	}
	return nil
}

// counts are what the models' forms have in common: bytes and parameters on one device, for a micro-batch.
type counts struct {
	parameters int64 // that the device has a part of: its share under tensor parallelism
	linear     int64 // of them in products
	block      int64 // of the largest part that ZeRO-3 gathers at once
	root       int64 // that it keeps gathered: tables

	kept    int64 // for the backward pass, without recomputation
	layer   int64 // of it one block's, which a recomputation makes again
	inputs  int64 // of it the blocks' inputs and what lies outside of blocks: all that a recomputation of blocks keeps
	logits  int64 // the most bytes that scores and their loss take at once
	flops   float64
	again   float64 // operations of products that recomputation adds
	reduced int64   // bytes that tensor parallelism reduces over its devices, forward and backward
}

// Setup is how a model is trained. The zero value of each field is the first choice of its documentation.
type Setup struct {
	Style     Style
	AMP       AMP
	Weights16 bool // weights, gradients and optimizer state are in two bytes too, without a copy in float32
	Recompute Recompute
	Whole     bool // attention keeps its scores: it is not fused, as in FlashAttention
	Dropout   bool // its masks are kept, even if the model has none of its own
	Chunked   bool // the head makes the scores of some rows at a time, and keeps none
	Optimizer string

	Batch      int // samples of a step, on one device or one group of tensor-parallel ones
	Accumulate int // equal parts that the batch is taken in
	Context    int // tokens of a sample; 0: as many as the model's

	Devices  int  // all
	ZeRO     int  // 0 to 3: what data-parallel devices share of optimizer states, gradients (2) and weights (3)
	TP       int  // devices that share each layer
	Sequence bool // of which each has a part of the tokens where it would have all of them

	Forward bool // a forward pass whose graph is kept, and nothing else: no loss, gradients or optimizer
	Hopper  bool // the card has compute capability 9.0 or more, on which cuBLAS takes more workspace
}

// micro is the samples of a part of the batch.
func (s *Setup) micro() int64 { return int64(s.Batch / s.Accumulate) }

// replicas is the number of data-parallel devices.
func (s *Setup) replicas() int { return s.Devices / s.TP }

// normal is s with defaults in place of zeros, or why it is nothing that can be trained.
func (s Setup) normal() (Setup, error) {
	for _, n := range []*int{&s.Batch, &s.Accumulate, &s.TP} {
		if *n == 0 {
			*n = 1
		}
	}
	if s.Devices == 0 {
		s.Devices = s.TP
	}
	if s.Optimizer == "" {
		s.Optimizer = "adamw"
	}
	return s, s.sane()
}

func (s *Setup) sane() error {
	switch {
	case s.Batch < 1 || s.Accumulate < 1 || s.Devices < 1 || s.TP < 1 || s.Context < 0:
		return advice.Failf("numbers of samples, parts, tokens and devices begin at 1", "a step of %d samples in %d parts, %d tokens, on %d devices, %d for each layer", s.Batch, s.Accumulate, s.Context, s.Devices, s.TP)
	case max(s.Batch, s.Devices, s.TP) > 1<<31:
		return advice.Failf("they are at most 2147483648", "a batch of %d on %d devices", s.Batch, s.Devices)
	case s.Batch%s.Accumulate != 0:
		return advice.Failf("let --accumulate divide --batch", "a batch of %d does not come in %d equal parts", s.Batch, s.Accumulate)
	case s.Devices%s.TP != 0:
		return advice.Failf("let --tp divide --devices", "%d devices are no groups of %d", s.Devices, s.TP)
	case s.ZeRO < 0 || s.ZeRO > 3:
		return advice.Failf("stages are 0 to 3", "there is no ZeRO stage %d", s.ZeRO)
	case s.ZeRO > 0 && s.replicas() == 1:
		return advice.Failf("say how many there are, as in --devices 8", "ZeRO shares states over data-parallel devices, and there is one")
	case s.Weights16 && s.AMP != BF16 && s.AMP != FP16:
		return advice.Failf("add --amp bf16", "weights in two bytes are for products of two bytes")
	case s.Weights16 && s.Style != Torch:
		return advice.Failf("leave --weights to style torch", "style %s keeps a copy of its weights in float32", s.Style)
	}
	_, err := optimizer(s.Optimizer)
	return err
}

// half tells whether products are of two bytes.
func (s *Setup) half() bool { return s.AMP == BF16 || s.AMP == FP16 }

// Style is the kind of program whose habits decide what is kept.
type Style string

// The styles.
const (
	Torch     Style = "torch"     // Hugging Face's modules and torchvision's, by what autograd saves of them in 2026; autocast; FSDP
	Eager     Style = "eager"     // a decoder written out in PyTorch's elementary operations, attention too
	Megatron  Style = "megatron"  // Megatron-LM: weights of two bytes, gradients and master weights in float32
	DeepSpeed Style = "deepspeed" // torch's modules with weights and gradients of two bytes, master weights in float32
	LLMC      Style = "llm.c"     // llm.c: all activations in one piece, made before the first step
)

// Styles lists them.
var Styles = []string{string(Torch), string(Eager), string(Megatron), string(DeepSpeed), string(LLMC)}

// AMP is what products are computed in.
type AMP string

// The precisions, with the names that training has for them, and TF32 for float32 in memory.
const (
	Off  AMP = "none"
	BF16 AMP = "bf16"
	FP16 AMP = "fp16"
	TF32 AMP = "tf32" // float32 in memory
)

// Recompute is what the backward pass computes again in place of keeping it.
type Recompute string

// The choices.
const (
	None      Recompute = "none"
	Attention Recompute = "attention" // scores of attention, "selective"; nothing where attention is fused
	GELU      Recompute = "gelu"      // the activation function: llm.c's -r 1
	Block     Recompute = "block"     // of each block its input is kept, "full"
)

// Recomputes lists them.
var Recomputes = []string{string(None), string(Attention), string(GELU), string(Block)}

// Optimizer is what an optimizer keeps for a parameter.
type Optimizer struct {
	Name   string
	Full   float64 // bytes beside weights in float32
	Halved float64 // bytes where weights and states have two
}

// Optimizers are those that are known. States of adam8bit are a byte each, with a float32 to a block of 256; small tensors,
// which it leaves in float32, are not counted, nor the rows and columns of adafactor and what muon keeps more of vectors.
var Optimizers = []Optimizer{
	{"sgd", 0, 0}, {"momentum", 4, 2}, {"lion", 4, 2}, {"adam", 8, 4}, {"adamw", 8, 4}, {"amsgrad", 12, 6}, {"adam8bit", 2 + 8./256, 2 + 8./256},
	{"nadam", 8, 4}, {"radam", 8, 4}, {"adamax", 8, 4}, {"rmsprop", 4, 2}, {"adagrad", 4, 2}, {"adadelta", 8, 4}, {"adafactor", 0, 0}, {"muon", 4, 2},
	{"schedulefree", 8, 4}, {"rprop", 8, 4}, {"asgd", 4, 2},
}

// OptimizerNames lists their names.
func OptimizerNames() []string {
	var names []string
	for _, o := range Optimizers {
		names = append(names, o.Name)
	}
	return names
}

func optimizer(name string) (Optimizer, error) {
	i := slices.IndexFunc(Optimizers, func(o Optimizer) bool { return o.Name == name })
	if i < 0 {
		return Optimizer{}, advice.Failf(advice.Meant(name, OptimizerNames())+"there are "+advice.List(OptimizerNames()), "there is no optimizer %q", name)
	}
	return Optimizers[i], nil
}
