package pytorch

import (
	"testing"

	"github.com/warpline-ml/warpline/dtype"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// "Layers and losses"
func TestActivations(t *testing.T) {
	env := fresh(t, "cpu")
	x, w := pattern(env, 7, 0, 13, 2, 4), pattern(env, 3, 1, 5, 1)
	img := env.Randn(1, 2, 4, 4)

	// `nn.ReLU()`, `nn.GELU()`, `nn.GELU(approximate="tanh")`, `nn.SiLU()`, `nn.Sigmoid()`, `nn.Tanh()`, `nn.Softmax(-1)`
	use(nn.ReLU{}, nn.GELU{}, nn.GELUTanh{}, nn.SiLU{}, nn.Sigmoid{}, nn.Tanh{}, nn.Softmax{})
	// `F.elu(x)`, `F.celu(x)`, `F.selu(x)`, `F.leaky_relu(x)`, `F.prelu(x, w)` | the layers, which hold no parameters
	use(nn.ELU{}.Forward(x), nn.CELU{}.Forward(x), nn.SELU{}.Forward(x), nn.LeakyReLU{}.Forward(x), (&nn.PReLU{Weight: w}).Forward(x))
	// `F.hardtanh(x)`, `F.hardsigmoid(x)`, `F.hardswish(x)`, `F.relu6(x)`, `F.threshold(x, 0.1, 20)`
	use(nn.Hardtanh{}.Forward(x), nn.Hardsigmoid{}.Forward(x), nn.Hardswish{}.Forward(x), nn.ReLU6{}.Forward(x), nn.Threshold{Bound: 0.1, Value: 20}.Forward(x))
	// `F.hardshrink(x)`, `F.softshrink(x)`, `F.tanhshrink(x)`, `F.softplus(x)`, `F.logsigmoid(x)`, `F.softmin(x, -1)`
	use(nn.Hardshrink{}.Forward(x), nn.Softshrink{}.Forward(x), nn.Tanhshrink{}.Forward(x), nn.Softplus{}.Forward(x), nn.LogSigmoid{}.Forward(x), nn.Softmin{}.Forward(x))
	// `F.glu(x)`
	use(nn.GLU{}.Forward(x))
	// `F.dropout2d(img)`, `F.alpha_dropout(x, training=True)` | act where the env trains
	use(nn.Dropout2d{P: 0.5}.Forward(img), nn.AlphaDropout{P: 0.5}.Forward(x))
}

// "Layers and losses"
func TestNorms(t *testing.T) {
	env := fresh(t, "cpu")
	x, img, gain := pattern(env, 7, 0, 13, 2, 4), pattern(env, 5, 2, 11, 2, 4, 2, 2), pattern(env, 3, 1, 5, 4)
	mean, variance := pattern(env, 2, 1, 5, 4), pattern(env, 3, 0, 5, 4).Square().AddScalar(0.5)

	// `F.rms_norm(x, (4,), gain, eps=1e-6)` | without eps PyTorch takes the dtype's own
	use(x.RMSNorm(gain, 1e-6))
	// `F.batch_norm(img, mean, variance, gain)`
	use(img.BatchNormEval(mean, variance, gain, env.Zeros(4), 1e-5))
	// `F.group_norm(img, 2)`, `F.instance_norm(img)` | as layers: without parameters
	use((&nn.GroupNorm{Groups: 2, Eps: 1e-5}).Forward(img), nn.NewInstanceNorm(env, 4, nn.InstanceNormConfig{}).Forward(img))
	// `nn.BatchNorm3d(8)`, `nn.InstanceNorm1d(8)`, `nn.InstanceNorm3d(8)` | for any [n, c, …]
	use(nn.NewBatchNorm(env, 8), nn.NewInstanceNorm(env, 8, nn.InstanceNormConfig{}), nn.NewInstanceNorm(env, 8, nn.InstanceNormConfig{}))
	// `nn.AvgPool2d(2)`, `F.avg_pool2d(img, 2)` | padding counts as zeros
	use(nn.AvgPool2d{Kernel: 2}, img.AvgPool2d(tensor.Pool{Kernel: [2]int{2, 2}}))
}

// "Layers and losses"
func TestRecurrent(t *testing.T) {
	env := fresh(t, "cpu")
	x, lengths := env.Randn(5, 2, 3), tensor.From(env, []int64{5, 3}, 2)
	lstm := nn.NewLSTM(env, 3, 4, nn.RecurrentConfig{})
	state := nn.RecurrentState{H: env.Zeros(1, 2, 4), C: env.Zeros(1, 2, 4)}

	// `y, (h, c) = lstm(x, (h, c))` | zeros where H or C is nil; `lstm.Forward(x)` gives the results alone
	y, next := lstm.Run(x, state, nil)

	use(y, next)
	// `nn.utils.rnn.pack_padded_sequence(x, lengths)`, `nn.utils.rnn.pad_packed_sequence(y)` | no packed values: the layer takes
	// padded ones and the lengths
	z, last := lstm.Run(x, nn.RecurrentState{}, lengths)

	use(z, last)
}

// lists is a model of PyTorch's ModuleList, ModuleDict and ParameterList.
type lists struct {
	Layers []*nn.Linear          `nn:"layers"`
	Heads  map[string]*nn.Linear `nn:"heads"`
	Scales []*tensor.Tensor      `nn:"scales"`
}

// "Models"
func TestLists(t *testing.T) {
	env := fresh(t, "cpu")
	m := &lists{Layers: []*nn.Linear{nn.NewLinear(env, 4, 4)}, Heads: map[string]*nn.Linear{"a": nn.NewLinear(env, 4, 2)}, Scales: []*tensor.Tensor{nn.NewParam(env.Ones(1))}}
	model := nn.NewLinear(env, 4, 3)

	// `nn.ModuleList([…])`, `nn.ModuleDict({…})`, `nn.ParameterList([…])`, `nn.ParameterDict({…})` | slices and maps in the struct
	use(&lists{Layers: []*nn.Linear{nn.NewLinear(env, 4, 4)}, Heads: map[string]*nn.Linear{"a": nn.NewLinear(env, 4, 2)}})

	if nn.Count(m) != 31 {
		t.Errorf("the walk finds %d numbers", nn.Count(m))
	}

	// `model.parameters()`, `model.buffers()`, `model.named_buffers()` | iterators of path and tensor
	use(nn.Params(model), nn.Buffers(model), nn.Buffers(model))
	// `model.train()` | what env makes is in training unless `env.Eval()` is asked
	use(env.Train())
	// `model.half()`
	nn.Cast(model, dtype.F16)
	// `model.bfloat16()`
	nn.Cast(model, dtype.BF16)
	// `model.float()`
	nn.Cast(model, dtype.F32)
	// `nn.Buffer(t)`
	use(tensor.NewBuffer(env.Zeros(3)))
}
