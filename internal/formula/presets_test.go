package formula

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/cards"
)

func TestPresetsHaveTheirParameters(t *testing.T) {
	for _, p := range Presets {
		if got := p.Model.Parameters(); got != p.Parameters {
			t.Errorf("%s: %d parameters, published %d: %+d", p.Name, got, p.Parameters, got-p.Parameters)
		}
		if _, err := Find(p.Name); err != nil {
			t.Error(err)
		}
	}
	for family := range short {
		if _, err := Find(family); err != nil {
			t.Error(err)
		}
	}
}

// Multiply-adds of one picture, in billions, as torchvision publishes them.
func TestResNetsHaveTheirOperations(t *testing.T) {
	for name, want := range map[string]float64{"resnet18": 1.814, "resnet34": 3.664, "resnet50": 4.089, "resnet101": 7.801, "resnet152": 11.514} {
		p, _ := Find(name)
		within(t, name, p.Model.FLOPs(0, false)/6e9, want, .001)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ config, preset string }{
		{`{"model_type":"gpt2","n_layer":12,"n_embd":768,"n_head":12,"vocab_size":50257,"n_positions":1024}`, "gpt2"},
		{`{"model_type":"llama","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,"max_position_embeddings":131072,"tie_word_embeddings":false}`, "llama-3.1-8b"},
		{`{"model_type":"mistral","num_hidden_layers":32,"hidden_size":4096,"num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":32000}`, "mistral-7b"},
		{`{"model_type":"qwen2","num_hidden_layers":24,"hidden_size":896,"num_attention_heads":14,"num_key_value_heads":2,"intermediate_size":4864,"vocab_size":151936,"tie_word_embeddings":true}`, "qwen2.5-0.5b"},
		{`{"model_type":"qwen3","num_hidden_layers":36,"hidden_size":2560,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"intermediate_size":9728,"vocab_size":151936,"tie_word_embeddings":true}`, "qwen3-4b"},
		{`{"model_type":"gemma","num_hidden_layers":18,"hidden_size":2048,"num_attention_heads":8,"num_key_value_heads":1,"head_dim":256,"intermediate_size":16384,"vocab_size":256000}`, "gemma-2b"},
		{`{"model_type":"resnet","num_labels":1000,"depths":[3,4,6,3],"layer_type":"bottleneck"}`, "resnet50"},
		{`{"model_type":"resnet","num_labels":1000,"depths":[2,2,2,2],"layer_type":"basic"}`, "resnet18"},
	} {
		m, err := Parse([]byte(c.config))
		if err != nil {
			t.Errorf("%s: %v", c.preset, err)
			continue
		}
		p, _ := Find(c.preset)
		if m.Parameters() != p.Parameters {
			t.Errorf("%s: %d parameters, published %d", c.preset, m.Parameters(), p.Parameters)
		}
	}
	m, err := Parse([]byte(`{"model_type":"gpt_neox","num_hidden_layers":12,"hidden_size":768,"num_attention_heads":12,"intermediate_size":3072,"vocab_size":50304,"max_position_embeddings":2048}`))
	if err != nil || m.Parameters() != 162_322_944 { // Pythia 160M
		t.Errorf("%v, %v", m, err)
	}
}

// What is said of input that cannot be used, and what is to be done.
func TestRefusals(t *testing.T) {
	decoder, network := func() Model { p, _ := Find("gpt2"); return p.Model }(), func() Model { p, _ := Find("resnet50"); return p.Model }()
	fresh := func(m Model, s Setup) error { _, err := New(m, s); return err }
	setup := func(change func(s *Setup)) Setup {
		s := Setup{Style: Torch}
		change(&s)
		return s
	}
	parse := func(text string) error { _, err := Parse([]byte(text)); return err }
	find := func(name string) error { _, err := Find(name); return err }
	for _, c := range []struct {
		err  error
		says string
	}{
		{find("gpt3"), "gpt2"}, {find("lama-3.1-8b"), "llama-3.1-8b"}, {find("zzz"), "config.json"},
		{parse(`{"model_type":"llama","hidden_size":4096}`), `"num_hidden_layers"`}, {parse(`[1]`), "JSON object"}, {parse(`{`), "JSON object"}, {parse(`{}`), "model_type"},
		{parse(`{"model_type":"mamba"}`), "mamba"}, {parse(`{"model_type":"mixtral","num_local_experts":8}`), "experts"},
		{parse(`{"model_type":"gpt2","n_layer":-1}`), "n_layer"}, {parse(`{"model_type":"gpt2","n_layer":1e300}`), "n_layer"}, {parse(`{"model_type":"resnet","num_labels":1000,"depths":[3]}`), "depths"},
		{fresh(decoder, setup(func(s *Setup) { s.Batch = -1 })), "begin at 1"},
		{fresh(decoder, setup(func(s *Setup) { s.Batch, s.Accumulate = 3, 2 })), "equal parts"},
		{fresh(decoder, setup(func(s *Setup) { s.TP = 5 })), "12 heads"},
		{fresh(decoder, setup(func(s *Setup) { s.TP, s.Devices = 2, 3 })), "groups of 2"},
		{fresh(decoder, setup(func(s *Setup) { s.ZeRO = 1 })), "--devices"},
		{fresh(decoder, setup(func(s *Setup) { s.ZeRO, s.Devices = 4, 8 })), "0 to 3"},
		{fresh(decoder, setup(func(s *Setup) { s.Context = 2048 })), "1024 positions"},
		{fresh(decoder, setup(func(s *Setup) { s.Optimizer = "adamW" })), "adamw"},
		{fresh(decoder, setup(func(s *Setup) { s.Weights16 = true })), "--amp bf16"},
		{fresh(network, setup(func(s *Setup) { s.TP = 2 })), "ResNet"}, {fresh(network, setup(func(s *Setup) { s.Context = 2 })), "tokens"},
		{fresh(&MLP{[]int{4}}, setup(func(*Setup) {})), "--widths"}, {fresh(Bare(0), setup(func(*Setup) {})), "parameters"}, {fresh(&Decoder{}, setup(func(*Setup) {})), "--layers"},
	} {
		if c.err == nil {
			t.Errorf("nothing is said of what should say %q", c.says)
		} else if text := c.err.Error() + "; " + advice.HintOf(c.err); !strings.Contains(text, c.says) || advice.HintOf(c.err) == "" {
			t.Errorf("%q lacks %q, or what to do", text, c.says)
		}
	}
}

func TestParseCount(t *testing.T) {
	for text, want := range map[string]float64{"1e9": 1e9, "7B": 7e9, "124M": 124e6, "1.5b": 1.5e9, "2T": 2e12, "10k": 1e4} {
		if got, ok := ParseCount(text); !ok || got != want {
			t.Errorf("%s is %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "B", "gpt2", "NaN", "inf", "7BB", "0x10", "1_0"} {
		if got, ok := ParseCount(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// The floor of 10⁹ parameters with Adam in float32, which the issue names: 16 bytes each.
func TestFloor(t *testing.T) {
	e := estimate(t, Bare(1e9), Setup{Style: Torch})
	if !e.Floor || e.High != 0 || math.Abs(float64(e.Total)/gib-14.90) > .005 {
		t.Errorf("%+v", e)
	}
}

// What each lever does, on every preset that it is for: recomputation, sharing and parts never take more, and estimates lie in
// their range.
func TestLevers(t *testing.T) {
	card, _ := cards.Find("h100-80")
	for _, p := range Presets {
		base := Setup{Style: Torch, AMP: BF16, Batch: 8}
		all := estimate(t, p.Model, base)
		for name, change := range map[string]func(s *Setup){
			"recompute": func(s *Setup) { s.Recompute = Block }, "parts": func(s *Setup) { s.Accumulate = 8 }, "sgd": func(s *Setup) { s.Optimizer = "sgd" },
			"zero 1": func(s *Setup) { s.Devices, s.ZeRO = 8, 1 }, "zero 3": func(s *Setup) { s.Devices, s.ZeRO = 64, 3 },
		} {
			s := base
			change(&s)
			e := estimate(t, p.Model, s)
			if grown := e.Of("gradients"); e.Total > all.Total+grown { // which last with parts and several devices
				t.Errorf("%s with %s takes %d bytes, without %d", p.Name, name, e.Total, all.Total)
			}
			if e.Low > e.Total || e.Total > e.High {
				t.Errorf("%s with %s: %d lies outside of %d to %d", p.Name, name, e.Total, e.Low, e.High)
			}
			x, err := Last(p.Model, s, &card, 0)
			if err != nil || !(x.Low <= x.Step && x.Step <= x.High && x.Step > 0) {
				t.Errorf("%s with %s: %+v, %v", p.Name, name, x, err)
			}
		}
		likely, sure, ok, err := Largest(p.Model, base, &card)
		if err != nil || !ok || sure > likely {
			t.Errorf("%s: largest batch %d, surely %d, %v, %v", p.Name, likely, sure, ok, err)
		}
		for _, n := range []int{likely, likely + 1} {
			if s := base; n > 0 {
				s.Batch = n
				if e := estimate(t, p.Model, s); (e.Total <= card.Memory) != (n == likely) {
					t.Errorf("%s: a batch of %d takes %d bytes, and %d is the largest", p.Name, n, e.Total, likely)
				}
			}
		}
	}
}

// TestConfigsHaveTheirParameters: random configurations as Transformers writes them have as many parameters as its models
// of them (testdata/configs.py).
func TestConfigsHaveTheirParameters(t *testing.T) {
	raw, err := os.ReadFile("testdata/configs.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Parameters int64
		Config     json.RawMessage
	}
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) < len(kinds) {
		t.Fatal(len(rows), err)
	}
	seen := map[string]bool{}
	for _, r := range rows {
		m, err := Parse(r.Config)
		if err != nil {
			t.Errorf("%s: %v", r.Config, err)
			continue
		}
		var kind struct {
			Type string `json:"model_type"`
		}
		_ = json.Unmarshal(r.Config, &kind)
		seen[kind.Type] = true
		if got := m.Parameters(); got != r.Parameters {
			t.Errorf("%d parameters, Transformers has %d: %s", got, r.Parameters, r.Config)
		}
	}
	for kind := range kinds {
		if !seen[kind] {
			t.Errorf("no configuration of %s is compared", kind)
		}
	}
}
