package pytorch

import (
	"path/filepath"
	"testing"

	"github.com/warpline-ml/warpline/ckpt"
	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// "Layers and losses"
func TestLayers(t *testing.T) {
	env := fresh(t, "cpu")

	// `nn.Linear(4, 3)`, `nn.Linear(4, 3, bias=False)`
	use(nn.NewLinear(env, 4, 3), nn.NewLinearNoBias(env, 4, 3))
	// `nn.Conv2d(1, 8, 3, padding=1)`, `nn.Conv2d(…, bias=False)`
	use(nn.NewConv2d(env, 1, 8, 3, nn.ConvConfig{Padding: 1}), nn.NewConv2d(env, 1, 8, 3, nn.ConvConfig{NoBias: true}))
	// `nn.BatchNorm1d(8)`, `nn.BatchNorm2d(8)` | `Act: tensor.ActReLU` and `ForwardAdd(x, residual)` put ReLU and a residual
	// sum in the same pass
	use(nn.NewBatchNorm(env, 8))
	// `nn.Conv1d(1, 8, 3, padding="same")`, `nn.Conv1d(1, 8, 3, padding=1, padding_mode="reflect")`
	use(nn.NewConv1d(env, 1, 8, 3, nn.ConvConfig{Same: true}), nn.NewConv1d(env, 1, 8, 3, nn.ConvConfig{Padding: 1, Mode: nn.PadReflect}))
	// `nn.ConvTranspose1d(8, 4, 3, stride=2)`, `nn.ConvTranspose2d(8, 4, 3, stride=2, output_padding=1)` | with `output_size`:
	// `ForwardSize(x, height, width)`
	use(nn.NewConvTranspose1d(env, 8, 4, 3, nn.ConvTransposeConfig{Stride: 2}), nn.NewConvTranspose2d(env, 8, 4, 3, nn.ConvTransposeConfig{Stride: 2, OutputPadding: 1}))
	// `nn.Upsample(scale_factor=2)`, `nn.Upsample((5, 7), mode="bilinear", align_corners=True)`
	use(nn.Upsample{Scale: []float64{2}}, nn.Upsample{Size: []int{5, 7}, Mode: nn.ModeBilinear, AlignCorners: true})
	// `nn.UpsamplingNearest2d(scale_factor=2)`, `nn.UpsamplingBilinear2d(scale_factor=2)`
	use(nn.Upsample{Scale: []float64{2}}, nn.Upsample{Scale: []float64{2}, Mode: nn.ModeBilinear, AlignCorners: true})
	// `nn.ZeroPad2d(1)`, `nn.ConstantPad1d(2, 0.5)`
	use(nn.Pad{Sides: []int{1, 1, 1, 1}}, nn.Pad{Sides: []int{2, 2}, Value: 0.5})
	// `nn.ReflectionPad2d(1)`, `nn.ReplicationPad1d(2)`, `nn.CircularPad1d(2)`
	use(nn.Pad{Sides: []int{1, 1, 1, 1}, Mode: nn.PadReflect}, nn.Pad{Sides: []int{2, 2}, Mode: nn.PadReplicate}, nn.Pad{Sides: []int{2, 2}, Mode: nn.PadCircular})
	// `nn.PixelShuffle(2)`, `nn.PixelUnshuffle(2)`, `nn.ChannelShuffle(2)`
	use(nn.PixelShuffle{By: 2}, nn.PixelUnshuffle{By: 2}, nn.ChannelShuffle{Groups: 2})
	// `nn.Unfold(3)`, `nn.Fold((4, 4), 3)`
	use(nn.Unfold{Windows: nn.Windows{Kernel: [2]int{3, 3}}}, nn.Fold{Size: [2]int{4, 4}, Windows: nn.Windows{Kernel: [2]int{3, 3}}})
	// `nn.AdaptiveAvgPool1d(3)`, `nn.AdaptiveAvgPool2d((3, 2))`, `nn.AdaptiveAvgPool3d((3, 2, 2))`
	use(nn.AdaptiveAvgPool{Size: []int{3}}, nn.AdaptiveAvgPool{Size: []int{3, 2}}, nn.AdaptiveAvgPool{Size: []int{3, 2, 2}})
	// `nn.AdaptiveMaxPool1d(3)`, `nn.AdaptiveMaxPool2d((3, 2))`
	use(nn.AdaptiveMaxPool{Size: []int{3}}, nn.AdaptiveMaxPool{Size: []int{3, 2}})
	// `nn.utils.parametrizations.weight_norm(m)`, `nn.utils.weight_norm(m)` | of a layer with a `Weight`
	use(nn.NewWeightNorm(nn.NewLinear(env, 4, 3), 0))
	// `nn.LayerNorm(8)`, `nn.RMSNorm(8)`, `nn.Embedding(10, 8)`
	use(nn.NewLayerNorm(env, 8), nn.NewRMSNorm(env, 8), nn.NewEmbedding(env, 10, 8))
	// `nn.MultiheadAttention(8, 2)`, `nn.MultiheadAttention(8, 2, kdim=3, vdim=5, batch_first=True)` | `Attend(q, k, v, sight)`;
	// weights are of each head; masks are true where a query sees a key
	use(nn.NewMultiheadAttention(env, 8, nn.MultiheadConfig{Heads: 2}), nn.NewMultiheadAttention(env, 8, nn.MultiheadConfig{Heads: 2, KeyWidth: 3, ValueWidth: 5, BatchFirst: true}))
	// `nn.MultiheadAttention(8, 2, batch_first=True)` | self-attention; `ckpt.LoadModel` knows PyTorch's names, `ckpt.SaveModel` writes `c_attn.`
	// for `in_proj_` and `c_proj` for `out_proj`, of the same shapes
	use(nn.NewAttention(env, 8, nn.AttentionConfig{Heads: 2}))
	// `nn.TransformerEncoderLayer(8, 2)`, `nn.TransformerDecoderLayer(8, 2)` | nothing is dropped unless asked; `Encode(x, sight)`,
	// `Decode(x, memory, own, other)`
	use(nn.NewTransformerEncoderLayer(env, 8, nn.TransformerConfig{Heads: 2}), nn.NewTransformerDecoderLayer(env, 8, nn.TransformerConfig{Heads: 2}))
	// `nn.TransformerEncoder(layer, 2)`, `nn.TransformerDecoder(layer, 2)` | each layer is drawn apart, PyTorch's are copies
	use(nn.NewTransformerEncoder(env, 2, 8, nn.TransformerConfig{Heads: 2, NoFinalNorm: true}), nn.NewTransformerDecoder(env, 2, 8, nn.TransformerConfig{Heads: 2, NoFinalNorm: true}))
	// `nn.LSTM(4, 8, 2, bidirectional=True)`, `nn.LSTM(4, 8, proj_size=3)` | from a state, and for samples of unequal lengths in
	// place of packed sequences: `Run(x, state, lengths)`
	use(nn.NewLSTM(env, 4, 8, nn.RecurrentConfig{Layers: 2, Bidirectional: true}), nn.NewLSTM(env, 4, 8, nn.RecurrentConfig{Proj: 3}))
	// `nn.GRU(4, 8, batch_first=True)`, `nn.RNN(4, 8, nonlinearity="relu")`
	use(nn.NewGRU(env, 4, 8, nn.RecurrentConfig{BatchFirst: true}), nn.NewRNN(env, 4, 8, nn.RecurrentConfig{ReLU: true}))
	// `nn.LSTMCell(4, 8)`, `nn.GRUCell(4, 8)`, `nn.RNNCell(4, 8, nonlinearity="relu")` | one step: `Forward(x, h, c)` gives the next
	// `h` and `c`, of the others `Forward(x, h)`
	use(nn.NewLSTMCell(env, 4, 8, nn.CellConfig{}), nn.NewGRUCell(env, 4, 8, nn.CellConfig{}), nn.NewRNNCell(env, 4, 8, nn.CellConfig{ReLU: true}))
	// `DynamicCache()` | of Transformers; keys and values so far of one layer, for writing token by token: `Sight.Cache`,
	// `Attention.ForwardCached`, `GPT.Continue`
	use(nn.NewKVCache(env, 64))
	// `nn.GroupNorm(2, 8)`, `nn.InstanceNorm2d(8, affine=True, track_running_stats=True)` | without weights: `Weight` and
	// `Bias` nil
	use(nn.NewGroupNorm(env, 2, 8), nn.NewInstanceNorm(env, 8, nn.InstanceNormConfig{Affine: true, Track: true}))
	// `nn.PReLU(8)`, `nn.LeakyReLU()`, `nn.ELU()`, `nn.CELU()`, `nn.SELU()`
	use(nn.NewPReLU(env, 8), nn.LeakyReLU{}, nn.ELU{}, nn.CELU{}, nn.SELU{})
	// `nn.Softplus()`, `nn.LogSigmoid()`, `nn.Mish()`, `nn.Softsign()`, `nn.Tanhshrink()`
	use(nn.Softplus{}, nn.LogSigmoid{}, nn.Mish{}, nn.Softsign{}, nn.Tanhshrink{})
	// `nn.Hardswish()`, `nn.Hardsigmoid()`, `nn.Hardtanh()`, `nn.ReLU6()`, `nn.Threshold(0.1, 20)`
	use(nn.Hardswish{}, nn.Hardsigmoid{}, nn.Hardtanh{}, nn.ReLU6{}, nn.Threshold{Bound: 0.1, Value: 20})
	// `nn.Hardshrink()`, `nn.Softshrink()`, `nn.LogSoftmax(-1)`, `nn.Softmin(-1)`, `nn.Identity()`
	use(nn.Hardshrink{}, nn.Softshrink{}, nn.LogSoftmax{}, nn.Softmin{}, nn.Identity{})
	// `nn.GLU()`, SwiGLU, GEGLU | of halves of the last dimension, or of `Dim`
	use(nn.GLU{}, nn.GLU{Gate: nn.SiLU{}}, nn.GLU{Gate: nn.GELU{}})
	// `nn.Dropout2d(0.1)`, `nn.AlphaDropout(0.1)` | the first for any [n, c, ...]
	use(nn.Dropout2d{P: 0.1}, nn.AlphaDropout{P: 0.1})
	// `nn.Dropout(0.1)`, `nn.MaxPool2d(2)`, `nn.Flatten()`
	use(nn.Dropout{P: 0.1}, nn.MaxPool2d{Kernel: 2}, nn.Flatten{})
	// `nn.AdaptiveAvgPool2d(1)`
	use(nn.GlobalAvgPool{})
}

// net is a model with a layer and a way back around it.
type net struct {
	Inner *nn.Linear `nn:"inner"`
}

func (m *net) Forward(x *tensor.Tensor) *tensor.Tensor { return m.Inner.Forward(x).ReLU().Add(x) }

// "Models"
func TestModels(t *testing.T) {
	env, gpu := fresh(t, "cpu"), fresh(t, "null:a100-80")
	model := nn.Sequential{nn.NewLinear(env, 4, 3), nn.ReLU{}}
	path := filepath.Join(t.TempDir(), "model.safetensors")
	replaced := func(path string, m nn.Module) nn.Module { return map[string]nn.Module{"0": m, "1": nn.Tanh{}}[path] }

	// `class Net(nn.Module):` | a struct with `Forward`: [guide](guide.md#5-write-a-layer); with `nn.Forward` in it,
	// `nn.Summary` and profiles have a row of it
	use(&net{Inner: nn.NewLinear(env, 4, 4)})
	// `class Turn(nn.Module):` without parameters
	use(nn.Func(func(x *tensor.Tensor) *tensor.Tensor { return x.Transpose(0, 1) }))
	// `nn.Sequential(…)`
	use(nn.Sequential{nn.NewLinear(env, 4, 3), nn.ReLU{}})
	// `nn.Parameter(t)`, `model.register_buffer(name, t)` | exported fields of the struct
	use(nn.NewParam(env.Ones(3)), tensor.NewBuffer(env.Zeros(3)))
	// `model.named_parameters()`, `model.state_dict()` | iterators of path and tensor
	use(nn.Params(model), nn.State(model))
	// `sum(p.numel() for p in model.parameters())`
	use(nn.Count(model))
	// `copy.deepcopy(model)`, `torchinfo.summary(model)`
	use(nn.Clone(model), nn.Summary(model, 1, 4))
	// `model.set_submodule("1", nn.Tanh())` | what stands in an interface, by path; it returns the paths of what is replaced
	use(nn.Wrap(model, replaced))
	// `model.apply(init)`
	nn.Init(model, func(path string, p *tensor.Tensor) { p.FillInPlace(0.1) })
	// `torch.save(model.state_dict(), path)` | safetensors
	use(ckpt.SaveModel(path, model))
	// `model.load_state_dict(torch.load(path))` | of a file of `safetensors.torch.save_file`, not of `torch.save`
	use(ckpt.LoadModel(path, model))
	// `model.requires_grad_(False)`, `p.requires_grad_(False)`
	nn.Freeze(model, true)
	// `peft.get_peft_model(model, peft.LoraConfig(r=8, lora_alpha=16, target_modules=["fc"]))` | peft's
	// numbers; `merge_and_unload` is `nn.MergeLoRA`, `merge_adapter` and `unmerge_adapter` are `nn.FoldLoRA`
	nn.AddLoRA(model, nn.LoRAConfig{Rank: 8, Alpha: 16, Match: nn.Matching("*")})

	nn.MergeLoRA(model)
	// `model.to(torch.bfloat16)`, `model.double()` | norms of batches keep float32
	nn.Cast(model, dtype.BF16)
	// `model.to(device)` | optimizers stay right
	nn.To(gpu, model)
}

// "Models"
func TestInit(t *testing.T) {
	env := fresh(t, "cpu")
	w, k := nn.NewParam(env.Zeros(8, 8)), nn.NewParam(env.Zeros(4, 4, 3, 3))

	// `init.kaiming_normal_(w)`
	nn.InitKaimingNormal(w, nn.Kaiming{})
	// `init.kaiming_uniform_(w, nonlinearity="relu", mode="fan_out")`
	nn.InitKaimingUniform(w, nn.Kaiming{Activation: "relu", FanOut: true})
	// `init.xavier_uniform_(w)`
	nn.InitXavierUniform(w, 1)
	// `init.xavier_normal_(w, init.calculate_gain("tanh"))`
	nn.InitXavierNormal(w, nn.Gain("tanh", 0))
	// `init.uniform_(w)`
	nn.InitUniform(w, -1, 1)
	// `init.normal_(w)`
	nn.InitNormal(w, 0, 0.02)
	// `init.trunc_normal_(w, std=0.02)`
	nn.InitTruncNormal(w, 0, 0.02, -2, 2)
	// `init.constant_(w, 0)`
	nn.InitConstant(w, 0)
	// `init.orthogonal_(w)`
	nn.InitOrthogonal(w, 1)
	// `init.eye_(w)`
	nn.InitEye(w)
	// `init.dirac_(k)`
	nn.InitDirac(k, 1)
	// `init.sparse_(w, 0.1)`
	nn.InitSparse(w, 0.1, 0.01)
}
