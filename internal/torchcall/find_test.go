package torchcall

import (
	"strings"
	"testing"
)

// TestFind asks as people do.
func TestFind(t *testing.T) {
	for call, want := range map[string]string{
		"nn.Linear":                           "torch.nn.Linear",
		"torch.nn.Linear(4, 3, bias=False)":   "torch.nn.Linear",
		"linear":                              "torch.nn.functional.linear",
		"crossentropy":                        "torch.nn.functional.cross_entropy",
		"cross_entropy":                       "torch.nn.functional.cross_entropy",
		"F.cross_entropy(logits, y)":          "torch.nn.functional.cross_entropy",
		"torch.optim.AdamW(weight_decay=0.1)": "torch.optim.AdamW",
		"adamw":                               "torch.optim.AdamW",
		"x.view":                              "torch.Tensor.view",
		"y.view(-1)":                          "torch.Tensor.view",
		"hidden_states.view(1, 2)":            "torch.Tensor.view",
		"tensor.to('cuda')":                   "torch.Tensor.to",
		"model.to('cuda')":                    "torch.nn.Module.to",
		"self.model.eval()":                   "torch.nn.Module.eval",
		"optimizer.zero_grad()":               "torch.optim.Optimizer.zero_grad",
		"loss.backward()":                     "torch.Tensor.backward",
		"CosineAnnealingLR":                   "torch.optim.lr_scheduler.CosineAnnealingLR",
		"torch.cuda.memory_allocated()":       "torch.cuda.memory_allocated",
		"nn.init.kaiming_normal_":             "torch.nn.init.kaiming_normal_",
		"x @ w":                               "x @ w",
		"a+b":                                 "x + y",
	} {
		a := Find(call)
		if len(a.Entries) == 0 || a.Entries[0].Name != want {
			t.Errorf("%s: %+v, want %s", call, a, want)
		}
	}
}

// TestNear asks for what PyTorch has not.
func TestNear(t *testing.T) {
	for call, want := range map[string]string{"nn.Linaer": "torch.nn.Linear", "x.veiw": "torch.Tensor.view",
		"torch.profiler.profile": "torch.", "nn.parallel.DistributedDataParallel": "torch.nn.DataParallel"} {
		a := Find(call)
		if len(a.Entries) > 0 || !strings.Contains(strings.Join(a.Near, " "), want) {
			t.Errorf("%s: %+v, want %s near", call, a, want)
		}
	}
	for _, call := range []string{"", "(", "...", "zzzzzzzzzzzzzzzzzz", "\x00\xff", strings.Repeat("x", 1<<16)} {
		if a := Find(call); len(a.Entries) > 0 {
			t.Errorf("%.40q: %+v", call, a.Entries)
		}
	}
}

// TestArguments looks for what a call is given.
func TestArguments(t *testing.T) {
	a := Find("F.cross_entropy(x, y, label_smoothing=0.1, zoom=2)")
	if way := a.Entries[0].Ways[0]; !strings.Contains(way.PyTorch, "label_smoothing=") || len(a.Unshown) != 1 || a.Unshown[0] != "zoom" {
		t.Errorf("%+v, unshown %q", way, a.Unshown)
	}
}

// TestFirst: the way whose arguments are those given comes first.
func TestFirst(t *testing.T) {
	for call, want := range map[string]string{".to(torch.bfloat16)": "x.to(torch.bfloat16)", "y.to( dtype )": "x.to(dtype)", "x.to('cuda')": "x.to(device)"} {
		if got := Find(call).Entries[0].Ways[0].PyTorch; got != want {
			t.Errorf("%s: first %s, want %s", call, got, want)
		}
	}
}

// TestEntries answers every name of the table.
func TestEntries(t *testing.T) {
	table := load()
	for name := range table.Names {
		e := table.Entry(name)
		if (len(e.Ways) == 0) != (e.State == Not) || (e.State == Not) != (e.Reason != "" && e.State != Nearest) {
			t.Errorf("%s: %+v", name, e)
		}
		for _, w := range e.Ways {
			if w.Example == "" || w.PyTorch == "" || len(w.Go) == 0 {
				t.Errorf("%s: %+v", name, w)
			}
		}
		if text := (Answer{Entries: []Entry{e}}).Text(); !strings.HasPrefix(text, name+" (") {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, g := range Groups() {
		if g.Here+g.Nearest+g.Not != g.Names || g.Names == 0 {
			t.Errorf("%+v", g)
		}
	}
}

// TestText leaves no Markdown in what people read.
func TestText(t *testing.T) {
	text := Find("autocast").Text()
	for _, want := range []string{"\nwith torch.autocast(", "\n    x.In(env.Autocast(dtype.BF16))\n", "(tensor/testdata/autocast.txt)", "\nOtherwise: autocast: ", "(docs/why.md#"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.ContainsAny(text, "`") || strings.Contains(text, "](") {
		t.Error(text)
	}
}
