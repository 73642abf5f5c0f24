package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/torchcall/source"
)

// TestDocsPyTorch makes the table that the command answers from, and the page, again.
func TestDocsPyTorch(t *testing.T) {
	files, err := source.Generate(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what examples/pytorch makes it: go generate ./internal/torchcall (%v)", path, err)
		}
	}
}

func TestTorch(t *testing.T) {
	status, stdout, _ := command(t.Context(), "torch", "nn.Linear")
	if status != exitDone || !strings.Contains(stdout, "\n    nn.NewLinear(env, 4, 3)\n") {
		t.Errorf("status %d\n%s", status, stdout)
	}
	status, stdout, _ = command(t.Context(), "torch")
	if status != exitDone || !strings.Contains(stdout, "torch.nn.functional ") {
		t.Errorf("status %d\n%s", status, stdout)
	}
	status, stdout, stderr := command(t.Context(), "torch", "nn.Linaer")
	if status != exitFailed || stdout != "" || !strings.Contains(stderr, "torch.nn.Linear") {
		t.Errorf("status %d\n%s\n%s", status, stdout, stderr)
	}
	if _, _, stderr = command(t.Context(), "torch", "Torch.nn"); !strings.Contains(stderr, "it is a package") {
		t.Error(stderr)
	}
}

// TestTorchJSON decodes what is documented.
func TestTorchJSON(t *testing.T) {
	_, stdout, _ := command(t.Context(), "torch", "--json", "x.view(3, -1)")
	var got struct {
		Call    string
		Entries []struct {
			Name, State string
			Ways        []struct {
				PyTorch, Example string
				Go               []string
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if e := got.Entries[0]; e.Name != "torch.Tensor.view" || e.State != "here" || e.Ways[0].Go[0] != "x.Reshape(3, -1)" || !strings.HasPrefix(e.Ways[0].Example, "env := ") {
		t.Errorf("%+v", e)
	}
	status, stdout, _ := command(t.Context(), "torch", "--json", "nn.Linaer")
	if lines := decode(t, stdout); status != exitFailed || len(lines) == 0 || lines[0]["near"] == nil {
		t.Errorf("status %d: %s", status, stdout)
	}
	_, stdout, _ = command(t.Context(), "torch", "--json")
	if lines := decode(t, stdout); len(lines) != 1 || lines[0]["groups"] == nil {
		t.Error(stdout)
	}
}
