package main

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/formula"
)

// Every preset gives a whole report on every card, whose terms add up.
func TestPlanOfEveryPreset(t *testing.T) {
	for _, p := range formula.Presets {
		code, out, errs := command(t.Context(), "plan", p.Name, "--amp", "bf16", "--json")
		var r planReport
		if err := json.Unmarshal([]byte(out), &r); code != exitDone || err != nil {
			t.Fatalf("%s: %d, %v\n%s", p.Name, code, err, errs)
		}
		sum := r.Weights + r.Gradients + r.Optimizer + r.Casts + r.Gathered + r.Activations + r.Logits + r.Workspace + r.Context
		if sum-r.Apart != r.Total || r.Parameters != p.Parameters || *r.Range[0] > r.Total || *r.Range[1] < r.Total {
			t.Errorf("%s: %s", p.Name, out)
		}
		if len(r.Cards) != len(cards.All) || !strings.Contains(errs, "at most at once") {
			t.Errorf("%s: %d cards\n%s", p.Name, len(r.Cards), errs)
		}
		for _, c := range r.Cards {
			if c.LargestBatch == nil || (*c.LargestBatch >= 1) != (c.Fits == formula.Yes || c.Fits == formula.Likely) {
				t.Errorf("%s on %s: fits %s, largest batch %v", p.Name, c.Card, c.Fits, c.LargestBatch)
			}
		}
	}
}

func TestPlanOfAFloor(t *testing.T) {
	code, out, errs := command(t.Context(), "plan", "1e9", "--json", "--card", "l4")
	var r planReport
	if err := json.Unmarshal([]byte(out), &r); code != exitDone || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, errs)
	}
	if !r.Floor || r.Range[1] != nil || r.Cards[0].LargestBatch != nil || r.Cards[0].Fits != formula.Open || !strings.Contains(errs, "14.9 GiB is the floor") {
		t.Errorf("%s\n%s", out, errs)
	}
	if code, _, _ := command(t.Context(), "plan", "7B", "--card", "t4"); code != exitFound {
		t.Errorf("104 GiB on a T4: exit status %d", code)
	}
}

func TestPlanOfFLOPs(t *testing.T) {
	code, out, errs := command(t.Context(), "plan", "--flops", "3.1e23", "--devices", "1024", "--card", "a100-80", "--amp", "bf16", "--efficiency", "50%", "--json")
	var r flopsReport
	if err := json.Unmarshal([]byte(out), &r); code != exitDone || err != nil {
		t.Fatalf("%d, %v\n%s", code, err, errs)
	}
	want := 3.1e23 / (312e12 * .5) / 86400
	if c := r.Cards[0]; math.Abs(c.DeviceDays/want-1) > .001 || math.Abs(c.Days*1024/want-1) > .001 || c.Range[0] >= c.Days || c.Range[1] <= c.Days {
		t.Errorf("%+v, not %.0f device days", c, want)
	}
	if _, out, _ := command(t.Context(), "plan", "--flops", "1e18", "--card", "t4"); !strings.Contains(out, "on 1 device whose products (float32) reach") {
		t.Errorf("without --amp products are of float32:\n%s", out)
	}
}

func TestPlanOfAConfig(t *testing.T) {
	r := newRoom(t)
	r.json("model/config.json", map[string]any{"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8,
		"intermediate_size": 8192, "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": true})
	for _, what := range []string{"model", "model/config.json", "./model"} {
		_, config, errs := command(t.Context(), "plan", what, "--batch", "2", "--context", "4096", "--json")
		_, preset, _ := command(t.Context(), "plan", "llama-3.2-1b", "--batch", "2", "--context", "4096", "--json")
		if strings.Replace(config, `"what":"`+what, `"what":"llama-3.2-1b`, 1) != preset || preset == "" {
			t.Errorf("%s: %s\n%s\n%s", what, config, preset, errs)
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	r := newRoom(t)
	r.file("bad.json", []byte("{"))
	r.json("part.json", map[string]any{"model_type": "llama", "hidden_size": 64})
	for _, c := range []struct{ args, says string }{
		{"", "WHAT is missing"}, {"gpt3", "did you mean gpt2?"}, {"nowhere/config.json", "nowhere/config.json"}, {"bad.json", "JSON"}, {"part.json", "num_hidden_layers"},
		{"gpt2 --batch 0", "begin at 1"}, {"gpt2 --tp 5", "heads"}, {"gpt2 --zero 2", "--devices"}, {"gpt2 --card h100", "h100-80"}, {"gpt2 --amp bf17", "--amp"}, {"gpt2 --style pytorch", "--style"},
		{"gpt2 --recompute everything", "--recompute"}, {"gpt2 --optimizer adamm", "adam"}, {"0", "7B"}, {"1e300", "7B"}, {"mlp", "--widths"}, {"decoder", "--layers"}, {"gpt2 --efficiency 300%", "share"},
		{"gpt2 --tokens many", "--tokens"}, {"--flops x", "--flops"}, {"gpt2 --flops 1e20", "both"}, {"gpt2 --context 5000", "1024 positions"}, {"gpt2 medium", "too many"}, {"resnet50 --image 3", "--image"},
		{"gpt2 --params bf16", "--amp bf16"}, {"gpt2 --widths 3,4", "--widths"}, {"gpt2 --image 64", "--image"}, {"resnet50 --layers 3", "--layers"}, {"mlp --widths 3,4 --vocab 3", "--vocab"},
		{"1e9 --batch 4", "--batch"}, {"1e9 --context 4", "--context"}, {"--flops 1e20 --batch 4", "--batch"}, {"gpt2 --sequence", "--tp"}, {"gpt2 --efficiency 0", "share"},
		{"gpt2 --batch 99999999999", "at most"}, {"gpt2 --layers 2000000000", "sizes"},
	} {
		code, out, errs := command(t.Context(), append([]string{"plan"}, strings.Fields(c.args)...)...)
		if code != exitFailed || out != "" || !strings.Contains(errs, c.says) || !strings.Contains(errs, "hint: ") || strings.Contains(errs, "mistake in warpline") {
			t.Errorf("plan %s: %d, %q, %q lacks %q", c.args, code, out, errs, c.says)
		}
	}
}
