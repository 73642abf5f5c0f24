package source

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
)

// variables are what the prose calls values of our types.
var variables = map[string]string{
	"x": "tensor.Tensor", "y": "tensor.Tensor", "w": "tensor.Tensor", "p": "tensor.Tensor", "env": "tensor.Env",
	"opt": "optim.Optimizer", "scaler": "optim.LossScaler", "row": "data.Row",
}

var (
	symbol   = regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*)`)
	ofDevice = regexp.MustCompile(`Device\(\)\.([A-Z]\w*)`)
	alone    = regexp.MustCompile(`^([A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*)(\(|$)`)
)

// TestSymbols looks for every symbol of ours that notes, reasons and differences name.
func TestSymbols(t *testing.T) {
	api, err := exported(root)
	if err != nil {
		t.Fatal(err)
	}
	table := table(t)
	everywhere := map[string]bool{}
	for names := range maps.Values(api) {
		maps.Copy(everywhere, names)
	}
	var prose []string
	for _, r := range table.Rows {
		prose = append(prose, r.Note)
	}
	prose = append(prose, table.Reasons...)
	for _, d := range table.Differences {
		prose = append(prose, d.Here)
	}
	seen := 0
	for _, text := range prose {
		for _, m := range span.FindAllStringSubmatch(text, -1) {
			if s := alone.FindStringSubmatch(m[1]); s != nil && !everywhere[s[1]] {
				t.Errorf("%q: nothing here is called %s", text, s[1])
			}
			for _, s := range symbol.FindAllStringSubmatch(m[1], -1) {
				of := s[1]
				if v, ok := variables[of]; ok {
					of = v
				}
				if names, ok := api[of]; ok {
					seen++
					if !names[s[2]] {
						t.Errorf("%q: %s has no %s", text, of, s[2])
					}
				}
			}
			for _, s := range ofDevice.FindAllStringSubmatch(m[1], -1) {
				if !api["tensor.Device"][s[1]] {
					t.Errorf("%q: tensor.Device has no %s", text, s[1])
				}
			}
		}
	}
	if seen < 60 {
		t.Errorf("%d symbols in the prose", seen)
	}
}

// TestTextFilesAreUsed knows that what stands in the files has names.
func TestTextFilesAreUsed(t *testing.T) {
	table := table(t)
	used := make([]bool, len(table.Reasons))
	for _, n := range table.Names {
		if n.Why > 0 {
			used[n.Why-1] = true
		}
	}
	for i, u := range used {
		if !u {
			t.Errorf("no name has the reason %q", table.Reasons[i])
		}
	}
	names, err := os.ReadFile("../names.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(names)) {
		if name := strings.TrimSpace(line); name[0] != '#' && len(table.Names[name].Rows)+table.Names[name].Why == 0 && table.Names[name].As == "" {
			t.Errorf("%s has no answer", name)
		}
	}
}
