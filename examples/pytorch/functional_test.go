package pytorch

import (
	"testing"

	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/tensor"
)

// "Layers and losses"
func TestFunctional(t *testing.T) {
	env := fresh(t, "cpu")
	x, w, img, k := env.Randn(2, 3), env.Randn(4, 3), env.Randn(1, 2, 4, 4), env.Randn(5, 2, 3, 3)
	ids, q, gain := env.RandInt(0, 4, 6), env.Randn(1, 2, 3, 4), env.Ones(3)
	b, f, wt := env.Zeros(4), env.Randn(2, 3), env.Randn(2, 3, 4, 4)
	qkv := env.Randn(1, 2, 3, 2, 4)
	conv := tensor.Conv{Stride: [2]int{2, 2}, Padding: [2]int{1, 1}}
	many, keys := env.Randn(1, 6, 3, 4), env.Randn(1, 2, 7, 4)

	// `F.relu(x)`, `F.gelu(x)`, `F.silu(x)`, `torch.sigmoid(x)`, `torch.tanh(x)`
	use(x.ReLU(), x.GELU(), x.SiLU(), x.Sigmoid(), x.Tanh())
	// `F.gelu(x, approximate="tanh")`
	use(x.GELUTanh())
	// `F.softsign(x)`, `F.mish(x)`
	use(x.Softsign(), x.Mish())
	// `F.softmax(x, -1)`, `F.log_softmax(x, -1)`
	use(x.Softmax(-1), x.LogSoftmax(-1))
	// `F.dropout(x, 0.5, training=…)` | acts where the env trains
	use(x.Dropout(0.5))
	// `F.linear(x, w)`, `F.embedding(ids, w)`
	use(x.Linear(w, nil), w.Embedding(ids))
	// `F.gelu(F.linear(x, w, b), approximate="tanh")` | one operation, of a layer by WithAct; so are bias gradient and slope in
	// Backward. Under autocast the bias stays float32
	use(x.LinearAct(w, b, tensor.ActGELUTanh))
	// `s = x + f; F.layer_norm(s, …)` | one operation, of a layer ForwardAdd; under autocast to bfloat16 `s` is float32 and
	// `y` bfloat16
	s, y := x.AddLayerNorm(f, gain, gain, 1e-5)

	use(s, y)
	// `F.conv2d(img, k, padding=1)`
	use(img.Conv2d(k, nil, tensor.Conv{Padding: [2]int{1, 1}}))
	// `F.conv_transpose2d(img, wt, stride=2, padding=1)` | `conv` is `tensor.Conv{Stride: [2]int{2, 2}, Padding: [2]int{1, 1}}`
	use(img.ConvTranspose2d(wt, nil, tensor.ConvTranspose{Conv: conv}))
	// `F.max_pool2d(img, 2)`
	use(img.MaxPool2d(tensor.Pool{Kernel: [2]int{2, 2}}))
	// `F.layer_norm(x, (3,), gain)`
	use(x.LayerNorm(gain, nil, 1e-5))
	// `F.scaled_dot_product_attention(q, q, q, is_causal=True)` | [batch, heads, positions, width]
	use(tensor.Attention(q, q, q, tensor.Mask{Causal: true}))
	// `F.scaled_dot_product_attention(*qkv.unbind(2))`, each transposed | [batch, positions, 3, heads, width] as one
	// product gives it; the result is [batch, positions, heads, width], and nothing is copied
	use(tensor.SelfAttention(qkv, tensor.Mask{}))
	// `F.scaled_dot_product_attention(many, q, q, scale=0.3, enable_gqa=True)` | heads of keys divide those of queries; shapes
	// say so
	use(tensor.Attention(many, q, q, tensor.Mask{Scale: 0.3}))
	// `F.scaled_dot_product_attention(q, keys, keys, attn_mask=torch.nn.attention.bias.causal_lower_right(3, 7))` | `Start` is the first query's position
	// among the keys, behind a cache its `Len()`
	use(tensor.Attention(q, keys, keys, tensor.Mask{Causal: true, Start: 4}))
	// `torch.nn.attention.flex_attention.flex_attention(q, q, q, score_mod=sliding)` | a window: as many keys before and behind as it says, negative is all
	use(tensor.Attention(q, q, q, tensor.Mask{Window: &tensor.Window{Left: 2, Right: 0}}))
	// `apply_rotary_pos_emb(q, k, cos, sin)` | of Transformers; RoPE of queries or keys, as Llama and GPT-NeoX pair elements, or
	// with `Interleaved` as GPT-J; a layer is `nn.Rotary`
	use(q.Rotary(tensor.Rotary{Base: 500000, Start: 4}, nil))
}

// "Layers and losses"
func TestSpatial(t *testing.T) {
	env := fresh(t, "cpu")
	img, seq := env.Randn(1, 4, 6, 6), env.Randn(1, 4, 7)
	wt, columns := env.Randn(4, 2, 3), env.Randn(1, 18, 16)

	// `F.interpolate(img, scale_factor=2.0)`, `F.interpolate(img, (4, 9), mode="bicubic", antialias=True)` | layers without
	// parameters are functions
	use(nn.Upsample{Scale: []float64{2}}.Forward(img), nn.Upsample{Size: []int{4, 9}, Mode: nn.ModeBicubic, Antialias: true}.Forward(img))
	// `F.pad(img, (1, 1, 2, 2), mode="reflect")` | also `"replicate"`, `"circular"`
	use(nn.Pad{Sides: []int{1, 1, 2, 2}, Mode: nn.PadReflect}.Forward(img))
	// `F.pixel_shuffle(img, 2)`, `F.pixel_unshuffle(img, 2)`, `F.channel_shuffle(img, 2)`
	use(nn.PixelShuffle{By: 2}.Forward(img), nn.PixelUnshuffle{By: 2}.Forward(img), nn.ChannelShuffle{Groups: 2}.Forward(img))
	// `F.fold(columns, (6, 6), 3)`
	use(nn.Fold{Size: [2]int{6, 6}, Windows: nn.Windows{Kernel: [2]int{3, 3}}}.Forward(columns))
	// `F.unfold(img, 3, padding=1)` | `nn.Fold` is the way back
	use(nn.Unfold{Windows: nn.Windows{Kernel: [2]int{3, 3}, Padding: [2]int{1, 1}}}.Forward(img))
	// `F.adaptive_avg_pool2d(img, (4, 3))`, `F.adaptive_max_pool2d(img, 2)`, `F.adaptive_avg_pool1d(seq, 3)`
	use(nn.AdaptiveAvgPool{Size: []int{4, 3}}.Forward(img), nn.AdaptiveMaxPool{Size: []int{2, 2}}.Forward(img), nn.AdaptiveAvgPool{Size: []int{3}}.Forward(seq))
	// `F.conv_transpose1d(seq, wt, stride=2)` | a layer is a function of its weight
	use((&nn.ConvTranspose1d{Weight: wt, Stride: 2}).Forward(seq))
}

// "Layers and losses"
func TestLosses(t *testing.T) {
	env := fresh(t, "cpu")
	x, y, a, v := env.Randn(6, 4), env.Rand(6, 4), env.Randn(6, 4), env.Rand(6, 4)
	logits, labels, w := env.Randn(6, 4), env.RandInt(0, 4, 6), env.Rand(4)
	p, logp := y.Softmax(-1), logits.LogSoftmax(-1)
	sign := x.Sign()
	signs := sign.Select(1, 0)
	head := env.Randn(4, 4)

	// `F.cross_entropy(logits, labels)` | classes are the last dimension
	use(nn.CrossEntropy(logits, labels))
	// `F.cross_entropy(…, label_smoothing=0.1, ignore_index=0)`
	use(nn.CrossEntropy(logits, labels, nn.Smoothing(0.1), nn.Ignore(0)))
	// `F.cross_entropy(F.linear(x, head), labels)`, `F.linear_cross_entropy(x, head, labels)` | never holds all logits, as
	// Liger's fused form; the same options
	use(nn.LinearCrossEntropy(x, head, labels))
	// `F.cross_entropy(…, reduction="sum")`, `reduction="none"` | every loss takes them
	use(nn.CrossEntropy(logits, labels, nn.Summed()), nn.CrossEntropy(logits, labels, nn.Unreduced()))
	// `F.cross_entropy(…, weight=w)`, probabilities as targets | with soft targets of the logits' shape all options work, too
	use(nn.CrossEntropy(logits, labels, nn.ClassWeights(w)), nn.CrossEntropy(logits, p))
	// `F.nll_loss(logp, labels, weight=w)` | classes are the last dimension
	use(nn.NLL(logp, labels, nn.ClassWeights(w)))
	// `F.mse_loss(x, y)`, `F.binary_cross_entropy_with_logits(x, y)`
	use(nn.MSE(x, y), nn.BCEWithLogits(x, y))
	// `F.binary_cross_entropy_with_logits(x, y, weight=v, pos_weight=w)`
	use(nn.BCEWithLogits(x, y, nn.Weights(v), nn.PosWeight(w)))
	// `F.binary_cross_entropy(p, y)`
	use(nn.BCE(p, y))
	// `F.l1_loss(x, y)`, `F.smooth_l1_loss(x, y)`, `F.huber_loss(x, y)`
	use(nn.L1(x, y), nn.SmoothL1(x, y, 1), nn.Huber(x, y, 1))
	// `F.kl_div(logp, p, reduction="batchmean")`, `F.kl_div(logp, logp, log_target=True)`
	use(nn.KLDiv(logp, p, nn.BatchMean()), nn.KLDiv(logp, logp, nn.LogTargets()))
	// `F.gaussian_nll_loss(x, y, v)`, `F.poisson_nll_loss(x, y)`
	use(nn.GaussianNLL(x, y, v, nn.GaussianNLLConfig{}), nn.PoissonNLL(x, y, nn.PoissonNLLConfig{}))
	// `F.hinge_embedding_loss(x, sign)`, `F.soft_margin_loss(x, sign)`, `F.margin_ranking_loss(x, y, sign)` | `sign` is 1 and -1
	use(nn.Hinge(x, sign, 1), nn.SoftMargin(x, sign), nn.MarginRanking(x, y, sign, 0))
	// `F.multi_margin_loss(logits, labels)`
	use(nn.MultiMargin(logits, labels, nn.MultiMarginConfig{}))
	// `F.triplet_margin_loss(a, x, y)`, `F.pairwise_distance(x, y)`
	use(nn.TripletMargin(a, x, y, nn.TripletConfig{}), nn.PairwiseDistance(x, y, 2, 1e-6))
	// `F.cosine_embedding_loss(x, y, sign)`, `F.cosine_similarity(x, y)`
	use(nn.CosineEmbedding(x, y, signs, 0), nn.CosineSimilarity(x, y, -1, 1e-8))
	// `torchvision.ops.sigmoid_focal_loss(x, y)` | its default is the mean, as of all losses
	use(nn.Focal(x, y, 0.25, 2))
}
