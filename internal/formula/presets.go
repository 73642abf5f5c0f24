package formula

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Preset is a published model.
type Preset struct {
	Name       string
	Model      Model
	Parameters int64 // as its weights have them
}

// llama is a decoder of Llama's family.
func llama(layers, width, heads, kv, ffn, vocab, context int) Decoder {
	return Decoder{Layers: layers, Width: width, Heads: heads, KVHeads: kv, FFN: ffn, Vocab: vocab, Context: context, Activation: Gated, Untied: true}
}

// with changes a decoder.
func with(d Decoder, change func(d *Decoder)) *Decoder {
	change(&d)
	return &d
}

func as(*Decoder)     {}
func tied(d *Decoder) { d.Untied = false }

func gpt(layers, width, heads int) *Decoder {
	return &Decoder{Layers: layers, Width: width, Heads: heads, Vocab: 50257, Context: 1024, Activation: NewOps, LayerNorm: true, Bias: true, Positions: true, Dropout: true}
}

// mosaic is one of MosaicML's, as their published throughputs are of.
func mosaic(layers, width, heads, context int) *Decoder {
	return &Decoder{Layers: layers, Width: width, Heads: heads, Vocab: 50368, Context: context, Activation: Fused, LayerNorm: true, Bias: true, Positions: true}
}

// qwen normalises queries and keys.
func qwen(width int) func(d *Decoder) {
	return func(d *Decoder) { d.QKNorm, d.HeadWidth, d.Untied = true, width, d.Layers == 36 && d.Width == 4096 }
}

func resnet(bottleneck bool, depths ...int) *ResNet {
	return &ResNet{Depths: [4]int(depths), Bottleneck: bottleneck, Classes: 1000, Image: 224}
}

// Presets are published models, with the sizes of their config.json.
var Presets = []Preset{
	{"gpt2", gpt(12, 768, 12), 124_439_808},
	{"gpt2-medium", gpt(24, 1024, 16), 354_823_168},
	{"gpt2-large", gpt(36, 1280, 20), 774_030_080},
	{"gpt2-xl", gpt(48, 1600, 25), 1_557_611_200},
	{"llama-2-7b", with(llama(32, 4096, 32, 32, 11008, 32000, 4096), as), 6_738_415_616},
	{"llama-2-13b", with(llama(40, 5120, 40, 40, 13824, 32000, 4096), as), 13_015_864_320},
	{"llama-2-70b", with(llama(80, 8192, 64, 8, 28672, 32000, 4096), as), 68_976_648_192},
	{"llama-3.2-1b", with(llama(16, 2048, 32, 8, 8192, 128256, 8192), tied), 1_235_814_400},
	{"llama-3.2-3b", with(llama(28, 3072, 24, 8, 8192, 128256, 8192), tied), 3_212_749_824},
	{"llama-3.1-8b", with(llama(32, 4096, 32, 8, 14336, 128256, 8192), as), 8_030_261_248},
	{"llama-3.1-70b", with(llama(80, 8192, 64, 8, 28672, 128256, 8192), as), 70_553_706_496},
	{"llama-3.1-405b", with(llama(126, 16384, 128, 8, 53248, 128256, 8192), as), 405_853_388_800},
	{"tinyllama-1.1b", with(llama(22, 2048, 32, 4, 5632, 32000, 2048), as), 1_100_048_384},
	{"smollm2-135m", with(llama(30, 576, 9, 3, 1536, 49152, 8192), tied), 134_515_008},
	{"smollm2-360m", with(llama(32, 960, 15, 5, 2560, 49152, 8192), tied), 361_821_120},
	{"mistral-7b", with(llama(32, 4096, 32, 8, 14336, 32000, 8192), as), 7_241_732_096},
	{"qwen2.5-0.5b", with(llama(24, 896, 14, 2, 4864, 151936, 8192), func(d *Decoder) { d.QKVBias, d.Untied = true, false }), 494_032_768},
	{"qwen2.5-7b", with(llama(28, 3584, 28, 4, 18944, 152064, 8192), func(d *Decoder) { d.QKVBias = true }), 7_615_616_512},
	{"qwen3-4b", with(llama(36, 2560, 32, 8, 9728, 151936, 8192), qwen(128)), 4_022_468_096},
	{"qwen3-8b", with(llama(36, 4096, 32, 8, 12288, 151936, 8192), qwen(128)), 8_190_735_360},
	{"gemma-2b", with(llama(18, 2048, 8, 1, 16384, 256000, 8192), tied), 2_506_172_416},
	{"mpt-7b", mosaic(32, 4096, 32, 2048), 6_658_859_008},
	{"resnet18", resnet(false, 2, 2, 2, 2), 11_689_512},
	{"resnet34", resnet(false, 3, 4, 6, 3), 21_797_672},
	{"resnet50", resnet(true, 3, 4, 6, 3), 25_557_032},
	{"resnet101", resnet(true, 3, 4, 23, 3), 44_549_160},
	{"resnet152", resnet(true, 3, 8, 36, 3), 60_192_808},
}

// short names of families lead to the member that is most trained.
var short = map[string]string{"llama": "llama-3.1-8b", "llama-3": "llama-3.1-8b", "llama-2": "llama-2-7b", "mistral": "mistral-7b", "qwen": "qwen3-8b", "gemma": "gemma-2b", "mpt": "mpt-7b", "smollm2": "smollm2-360m", "resnet": "resnet50"}

// PresetNames lists the names.
func PresetNames() []string {
	var names []string
	for _, p := range Presets {
		names = append(names, p.Name)
	}
	return names
}

// Find returns a copy of a preset by its name, or by its family's.
func Find(name string) (Preset, error) {
	name = strings.ToLower(name)
	if full, ok := short[name]; ok {
		name = full
	}
	i := slices.IndexFunc(Presets, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		names := PresetNames()
		for s := range short {
			names = append(names, s)
		}
		slices.Sort(names)
		return Preset{}, advice.Failf(advice.Meant(name, names)+"there are "+advice.List(PresetNames())+"; or give a config.json, or a number of parameters such as 7B", "there is no preset %q", name)
	}
	p := Presets[i]
	switch m := p.Model.(type) {
	case *Decoder:
		p.Model = with(*m, as)
	case *ResNet:
		r := *m
		p.Model = &r
	}
	return p, nil
}

// ParseCount reads a number such as 1e9, 124M, 7B or 2T; false where it is none.
func ParseCount(text string) (float64, bool) {
	scale := 1.0
	if n := len(text); n > 1 {
		if i := strings.IndexByte("kmbt", text[n-1]|0x20); i >= 0 {
			text, scale = text[:n-1], math.Pow(1000, float64(i+1))
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	return v * scale, err == nil && v == v && !math.IsInf(v, 0) && !strings.ContainsAny(text, "xX_pP")
}

// Parse reads a Hugging Face config.json. The error is an advice.Error that names the field.
func Parse(config []byte) (Model, error) {
	var c map[string]any
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, advice.Failf("give a config.json of Hugging Face's", "it is no JSON object: %v", err)
	}
	f := &fields{c: c}
	kind := f.word("model_type", "")
	if kind == "" {
		return nil, advice.Failf("give a config.json of Hugging Face's; or sizes, as in: warpline plan decoder --layers 12 --width 768 --heads 12 --vocab 50257 --context 1024", `it has no "model_type"`)
	}
	for _, experts := range []string{"num_local_experts", "num_experts", "n_routed_experts"} {
		if f.has(experts) {
			return nil, advice.Failf("give a dense model, or a number of parameters for the floor", "%s has %q: mixtures of experts are not counted", kind, experts)
		}
	}
	read, ok := kinds[kind]
	if !ok {
		return nil, advice.Failf("there are "+advice.List(kindNames())+"; or give sizes, as in: warpline plan decoder --layers 12 --width 768 --heads 12 --vocab 50257 --context 1024", "no form is known for model_type %q", kind)
	}
	m := read(f, kind)
	return m, f.err
}

// kinds reads a config.json by its model_type.
var kinds = map[string]func(f *fields, kind string) Model{
	"gpt2": readGPT2, "llama": readLlama, "mistral": readLlama, "qwen2": readLlama, "qwen3": readLlama, "gemma": readLlama, "smollm3": readLlama, "phi3": readLlama,
	"gpt_neox": readNeoX, "mpt": readMPT, "resnet": readResNet,
}

func kindNames() []string {
	var names []string
	for k := range kinds {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

func readGPT2(f *fields, _ string) Model {
	d := gpt(f.size("n_layer"), f.size("n_embd"), f.size("n_head"))
	d.Vocab, d.Context, d.FFN = f.size("vocab_size"), f.size("n_positions"), f.or("n_inner", 0)
	d.Activation = function(f.word("activation_function", "gelu_new"))
	d.Untied = !f.truth("tie_word_embeddings", true)
	return d
}

func readLlama(f *fields, kind string) Model {
	d := llama(f.size("num_hidden_layers"), f.size("hidden_size"), f.size("num_attention_heads"), f.or("num_key_value_heads", 0), f.size("intermediate_size"),
		f.size("vocab_size"), f.or("max_position_embeddings", 0))
	d.HeadWidth = f.or("head_dim", 0)
	d.Untied = !f.truth("tie_word_embeddings", kind == "gemma" || kind == "smollm3")
	if kind != "mistral" && kind != "phi3" { // those have no such switches
		d.OutBias = kind != "qwen2" && f.truth("attention_bias", false)
		d.QKVBias = kind == "qwen2" || d.OutBias
		d.FFNBias = (kind == "llama" || kind == "smollm3") && f.truth("mlp_bias", false)
	}
	d.QKNorm = kind == "qwen3"
	return &d
}

func readNeoX(f *fields, _ string) Model {
	d := mosaic(f.size("num_hidden_layers"), f.size("hidden_size"), f.size("num_attention_heads"), f.size("max_position_embeddings"))
	d.Vocab, d.FFN, d.Positions = f.size("vocab_size"), f.size("intermediate_size"), false
	d.Activation, d.Untied = function(f.word("hidden_act", "gelu")), !f.truth("tie_word_embeddings", false)
	if !f.truth("attention_bias", true) {
		d.Bias, d.FFNBias = false, true
	}
	return d
}

func readMPT(f *fields, _ string) Model {
	d := mosaic(f.size("n_layers"), f.size("d_model"), f.size("n_heads"), f.size("max_seq_len"))
	d.Vocab, d.FFN = f.size("vocab_size"), d.Width*f.or("expansion_ratio", 4)
	d.Bias, d.Positions = !f.truth("no_bias", true), f.truth("learned_pos_emb", true)
	if a, ok := f.c["attn_config"].(map[string]any); !ok || a["alibi"] != false {
		d.Positions = false // by default, too
	}
	return d
}

func readResNet(f *fields, _ string) Model {
	var depths [4]int
	list, _ := f.c["depths"].([]any)
	if len(list) != 4 {
		f.fail(advice.Failf("give a config.json of Hugging Face's", `it has no four "depths"`))
		return &ResNet{}
	}
	for i, v := range list {
		n, _ := v.(float64)
		depths[i] = int(n)
	}
	classes := f.or("num_labels", 2) // as Transformers has it where a file says nothing
	if labels, ok := f.c["id2label"].(map[string]any); ok {
		classes = len(labels)
	}
	r := &ResNet{Depths: depths, Bottleneck: f.word("layer_type", "bottleneck") == "bottleneck", Classes: classes, Image: 224}
	widths := "[64 128 256 512]"
	if r.Bottleneck {
		widths = "[256 512 1024 2048]"
	}
	for name, usual := range map[string]string{"hidden_sizes": widths, "embedding_size": "64", "num_channels": "3", "downsample_in_first_stage": "false"} {
		if f.has(name) && fmt.Sprint(f.c[name]) != usual {
			f.fail(advice.Failf("give resnet18 to resnet152, or a number of parameters for the floor", "%s is %v: only ResNets with %s are counted", name, f.c[name], usual))
		}
	}
	return r
}

func function(name string) Activation {
	switch name {
	case "gelu_new", "gelu_fast":
		return NewOps
	case "relu":
		return ReLU
	}
	return Fused
}

// fields reads a config and keeps the first error.
type fields struct {
	c   map[string]any
	err error
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

func (f *fields) has(name string) bool { return f.c[name] != nil }

// size is a number that has to be there.
func (f *fields) size(name string) int {
	if !f.has(name) {
		f.fail(advice.Failf("give a whole config.json, or sizes by flags", "config.json has no %q", name))
		return 0
	}
	return f.or(name, 0)
}

// or is a number that may be missing or null.
func (f *fields) or(name string, otherwise int) int {
	if !f.has(name) {
		return otherwise
	}
	v, ok := f.c[name].(float64)
	if !ok || v != math.Trunc(v) || v < 1 || v > 1<<31 {
		f.fail(advice.Failf("it is a whole number from 1 up", "%q of config.json is %v", name, f.c[name]))
		return otherwise
	}
	return int(v)
}

func (f *fields) word(name, otherwise string) string {
	if v, ok := f.c[name].(string); ok {
		return v
	}
	return otherwise
}

func (f *fields) truth(name string, otherwise bool) bool {
	if v, ok := f.c[name].(bool); ok {
		return v
	}
	return otherwise
}
