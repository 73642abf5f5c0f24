package formula

import (
	"fmt"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
)

// llm.c prints what it allocates: logs of GPT-2 124M on an A100 (batch 56, -r 1) and 1558M on eight H100 (batch 16, -z 1).
func TestLLMC(t *testing.T) {
	for _, c := range []struct {
		name         string
		m            Model
		s            Setup
		activations  float64 // MiB, as printed, whole
		weights, opt float64 // MiB: of weights, and of moments and master weights together
	}{
		{"124M", gpt2(12, 768, 12), Setup{Style: LLMC, AMP: BF16, Batch: 56, Recompute: GELU}, 18564, 237, 3 * 474},
		{"1558M", gpt2(48, 1600, 25), Setup{Style: LLMC, AMP: BF16, Batch: 16, Devices: 8, ZeRO: 1}, 40409, 2971, 3 * 742},
	} {
		e := estimate(t, c.m, c.s)
		for _, x := range []struct {
			name string
			got  int64
			want float64
			unit float64 // by which the log's figures are cut off
		}{
			{"activations", e.Of("activations") + e.Of("logits"), c.activations, 1}, {"weights", e.Of("weights"), c.weights, 1},
			{"gradients", e.Of("gradients"), c.weights, 1}, {"optimizer", e.Of("optimizer"), c.opt, 3},
		} {
			if mib := float64(x.got) / mib; mib < x.want || mib >= x.want+x.unit {
				t.Errorf("%s: %s %.2f MiB, measured %v", c.name, x.name, mib, x.want)
			}
		}
	}
	e := estimate(t, gpt2(12, 768, 12), Setup{Style: LLMC, AMP: BF16, Batch: 56, Recompute: GELU})
	within(t, "memory of the card", float64(e.Total), 21315*mib, .001)
}

// Megatron's golden runs: what its tests measured of "max allocated" memory, GiB.
func TestMegatron(t *testing.T) {
	small := gpt2(12, 512, 8)
	large := &Decoder{Layers: 32, Width: 4096, Heads: 32, KVHeads: 8, Vocab: 131073, Context: 8192, LayerNorm: true, Bias: true, Positions: true, Untied: true, Activation: Fused}
	fifteen := &Decoder{Layers: 32, Width: 6144, Heads: 48, KVHeads: 8, Vocab: 256000, Context: 4096, LayerNorm: true, Untied: true, Activation: Fused}
	for _, c := range []struct {
		name     string
		m        *Decoder
		s        Setup
		measured map[string]float64
		within   float64
	}{
		{"3: 6.7B, TP 4, DP 2", large, Setup{AMP: BF16, Batch: 2, TP: 4, Devices: 8, ZeRO: 1}, map[string]float64{"A100": 54.19, "H100": 53.22, "GB200": 54.22}, .025},
		{"5: 15B, TP 8 with sequences, DP 16", fifteen, Setup{AMP: BF16, Batch: 4, TP: 8, Sequence: true, Devices: 128, ZeRO: 1}, map[string]float64{"H100": 26.23, "A100": 26.44}, .025},
		{"6: unfused attention", small, Setup{AMP: BF16, Batch: 4, Devices: 8, ZeRO: 1, Whole: true}, map[string]float64{"H100": 4.379, "A100": 4.352}, .01},
		{"7: fused attention", small, Setup{AMP: BF16, Batch: 4, Devices: 8, ZeRO: 1}, map[string]float64{"H100": 2.507}, .01},
		{"8: blocks made again", small, Setup{AMP: BF16, Batch: 4, Devices: 8, Whole: true, Recompute: Block}, map[string]float64{"H100": 2.385}, .025},
		{"9: TP 4, unfused, fp16", small, Setup{AMP: FP16, Batch: 4, TP: 4, Devices: 8, Whole: true}, map[string]float64{"A100": 1.487, "H100": 1.489}, .01},
	} {
		c.s.Style = Megatron
		e := estimate(t, c.m, c.s)
		for card, measured := range c.measured {
			within(t, c.name+", "+card, float64(e.Allocated())/gib, measured, c.within)
			if got := measured * gib; got < float64(e.Low-e.Of("context")) || got > float64(e.High-e.Of("context")) {
				t.Errorf("%s, %s: %.3f GiB lies outside of the range", c.name, card, measured)
			}
		}
	}
	steady := func(e *Estimate) float64 {
		return float64(e.Of("weights")+e.Of("gradients")+e.Of("optimizer")+e.Of("workspace")) / gib
	}
	within(t, "3, between steps", steady(estimate(t, large, Setup{Style: Megatron, AMP: BF16, Batch: 2, TP: 4, Devices: 8, ZeRO: 1})), 19.24, .002)
	within(t, "5, between steps", steady(estimate(t, fifteen, Setup{Style: Megatron, AMP: BF16, Batch: 4, TP: 8, Sequence: true, Devices: 128, ZeRO: 1})), 12.36, .002)
}

// Six snapshots of PyTorch's memory: a decoder of 3,406,809,600 parameters, after the forward pass, net of weights. In those of
// 128 tokens the first product took cuBLAS's workspace; in the others it was there before.
func TestEager(t *testing.T) {
	m := &Decoder{Layers: 32, Width: 2560, Heads: 32, FFN: 10240, Vocab: 10000, Context: 512, Activation: Gated, Untied: true}
	if m.Parameters() != 3_406_809_600 {
		t.Fatalf("%d parameters", m.Parameters())
	}
	net := map[AMP]map[int]int64{
		Off:  {128: 5_723_951_104, 256: 12_588_752_896, 512: 30_009_344_000},
		BF16: {128: 10_239_517_696, 256: 14_589_031_424, 512: 26_173_740_032},
	}
	for amp, lengths := range net {
		for context, want := range lengths {
			e := estimate(t, m, Setup{Style: Eager, AMP: amp, Batch: 4, Context: context, Forward: true, Whole: true, Hopper: true})
			got := e.Total
			if context != 128 {
				got -= e.Of("workspace")
			}
			if got != want {
				t.Errorf("%s, %d tokens: %d bytes, measured %d: %+d", amp, context, got, want, got-want)
			}
		}
	}
	// The most of the first whole step, in which the optimizer makes its state: at the loss there is none yet.
	for context, measured := range map[int]float64{128: 54.803e9, 256: 54.824e9, 512: 54.868e9} {
		e := estimate(t, m, Setup{Style: Eager, Batch: 4, Context: context, Whole: true, Hopper: true})
		first := e.Of("weights") + e.Of("gradients") + e.Of("optimizer") + e.Of("workspace")
		within(t, fmt.Sprintf("a step, %d tokens", context), float64(first), measured, .01)
		if context < 512 && (e.Allocated() != first || e.When != "when the optimizer steps") {
			t.Errorf("%d tokens: %d bytes %s, not %d when the optimizer steps", context, e.Allocated(), e.When, first)
		}
	}
}

// torchtitan's table 2: Llama 3.1 8B on eight H100, one sequence of 32,768 tokens, blocks made again, 83.9 GiB. Products were of
// float8, so that only the range is asked for.
func TestFSDP(t *testing.T) {
	p, err := Find("llama-3.1-8b")
	if err != nil {
		t.Fatal(err)
	}
	e := estimate(t, p.Model, Setup{Style: Torch, AMP: BF16, Context: 32768, Devices: 8, ZeRO: 3, Recompute: Block, Hopper: true})
	t.Logf("%.1f GiB, from %.1f to %.1f", float64(e.Total)/gib, float64(e.Low)/gib, float64(e.High)/gib)
	if measured := 83.9 * gib; measured < float64(e.Low) || measured > float64(e.High) {
		t.Errorf("83.9 GiB lies outside of %.1f to %.1f", float64(e.Low)/gib, float64(e.High)/gib)
	}
}

// The table of the ZeRO paper (arXiv 1910.02054, figure 1): 7.5 billion parameters on 64 devices, GB.
func TestZeRO(t *testing.T) {
	for stage, want := range []float64{120, 31.4, 16.6, 1.9} {
		e := estimate(t, Bare(7.5e9), Setup{Style: DeepSpeed, AMP: FP16, Optimizer: "adam", Devices: 64, ZeRO: stage})
		within(t, fmt.Sprintf("stage %d", stage), float64(e.Total)/1e9, want, .02)
	}
}

// Published throughputs and the MFU that was published with them.
func TestMFU(t *testing.T) {
	mpt := func(layers, width, heads, context int) *Decoder {
		return &Decoder{Layers: layers, Width: width, Heads: heads, Vocab: 50368, Context: context, LayerNorm: true, Bias: true, Positions: true, Activation: Fused}
	}
	llama := func(layers, width, heads, kv, ffn int) *Decoder {
		return &Decoder{Layers: layers, Width: width, Heads: heads, KVHeads: kv, FFN: ffn, Vocab: 32000, Context: 4096, Untied: true, Activation: Gated}
	}
	const a100, h100, fp8 = 312e12, 989.4e12, 1978.9e12
	for _, c := range []struct {
		name   string
		m      *Decoder
		half   bool
		tokens float64 // a second, of a device
		peak   float64
		mfu    float64
		within float64 // points
	}{
		{"T1: MPT-7B", mpt(32, 4096, 32, 2048), false, 10643, h100, 46.44, .1},
		{"T2: MPT-13B", mpt(40, 5120, 40, 2048), false, 2262, a100, 59.57, .1},
		{"T3: MPT-30B", mpt(48, 7168, 64, 8192), false, 574, a100, 39.38, .1},
		{"T4: MPT-70B", mpt(80, 8192, 64, 2048), false, 1058, h100, 43.36, .1},
		{"T5: MPT-125M", mpt(12, 768, 12, 2048), false, 142830, a100, 44.79, .1},
		{"T6: MPT-1B", mpt(24, 2048, 16, 512), false, 70315, fp8, 29.06, .1},
		{"T7: GPT-2 1558M, llm.c's convention", gpt2(48, 1600, 25), true, 47711, h100, 47.4, .1},
		{"T11: Llama-2 7B", llama(32, 4096, 32, 32, 11008), false, 3014, a100, 45, .5},
		{"T11: Llama-2 13B", llama(40, 5120, 40, 40, 13824), false, 1507, a100, 43, .5},
		{"T11: Llama-2 70B", llama(80, 8192, 64, 8, 28672), false, 323, a100, 46, .5},
	} {
		got := 100 * MFU(c.m, c.m.Context, c.half, c.tokens, c.peak)
		t.Logf("%s: %.2f %%, published %.2f %%", c.name, got, c.mfu)
		if off := got - c.mfu; off > c.within || off < -c.within {
			t.Errorf("%s: MFU %.2f %%, published %.2f %%", c.name, got, c.mfu)
		}
	}
}

// Published throughputs lie in the range of times, the model knowing what the training used.
func TestTimesHoldPublishedOnes(t *testing.T) {
	h100, _ := cards.Find("h100-80")
	a100, _ := cards.Find("a100-80")
	preset := func(name string) Model { p, _ := Find(name); return p.Model }
	for _, c := range []struct {
		name    string
		m       Model
		s       Setup
		card    *cards.Card
		samples float64 // of a step, on one device
		tokens  float64 // a second, of a device
	}{
		{"T1: MPT-7B, 8 H100", preset("mpt-7b"), Setup{Style: Torch, AMP: BF16, Batch: 6, Devices: 8, ZeRO: 3}, &h100, 6 * 2048, 10643},
		{"T2: MPT-13B, 8 A100", mosaic(40, 5120, 40, 2048), Setup{Style: Torch, AMP: BF16, Batch: 2, Devices: 8, ZeRO: 3}, &a100, 2 * 2048, 2262},
		{"T3: MPT-30B, 8 A100", mosaic(48, 7168, 64, 8192), Setup{Style: Torch, AMP: BF16, Batch: 1, Devices: 8, ZeRO: 3, Recompute: Block}, &a100, 8192, 574},
		{"T4: MPT-70B, 128 H100", mosaic(80, 8192, 64, 2048), Setup{Style: Torch, AMP: BF16, Batch: 8, Devices: 128, ZeRO: 3, Recompute: Block}, &h100, 8 * 2048, 1058},
		{"T5: MPT-125M, 8 A100", mosaic(12, 768, 12, 2048), Setup{Style: Torch, AMP: BF16, Batch: 40, Devices: 8, ZeRO: 3}, &a100, 40 * 2048, 142830},
		{"T7: GPT-2 1558M, 8 H100, llm.c", preset("gpt2-xl"), Setup{Style: LLMC, AMP: BF16, Batch: 16, Devices: 8, ZeRO: 1}, &h100, 16 * 1024, 47711},
		{"T8: GPT-2 124M, 8 A100, llm.c", preset("gpt2"), Setup{Style: LLMC, AMP: BF16, Batch: 64, Devices: 8, ZeRO: 1}, &a100, 64 * 1024, 218000},
		{"T9: GPT-2 774M, 8 A100, llm.c", preset("gpt2-large"), Setup{Style: LLMC, AMP: BF16, Batch: 32, Devices: 8, ZeRO: 1}, &a100, 32 * 1024, 38500},
	} {
		x, err := Last(c.m, c.s, c.card, 0)
		if err != nil {
			t.Fatal(err)
		}
		measured := c.samples / c.tokens
		t.Logf("%s: %.3f s, from %.3f to %.3f, measured %.3f: %+.0f %%", c.name, x.Step, x.Low, x.High, measured, 100*(x.Step/measured-1))
		if measured < x.Low || measured > x.High {
			t.Errorf("%s: a step of %.3f s lies outside of %.3f to %.3f", c.name, measured, x.Low, x.High)
		}
	}
}
