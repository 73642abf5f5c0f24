package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
)

// TestFresh demands that the committed PTX belongs to the sources beside it.
func TestFresh(t *testing.T) {
	t.Chdir("..")
	ix, err := committed()
	if err != nil {
		t.Fatal(err)
	}
	units, err := collect()
	if err != nil {
		t.Fatal(err)
	}
	if len(units) == 0 || len(units) != len(ix.Modules) {
		t.Errorf("%d modules in the sources, %d in the index", len(units), len(ix.Modules))
	}
	for _, u := range units {
		hash, err := u.hash(ix.Compiler)
		if err != nil {
			t.Fatal(err)
		}
		m := find(ix, u.name)
		if m == nil || m.Hash != hash {
			t.Errorf("module %s is not what its sources say; run go generate ./internal/cuda/kernels", u.name)
			continue
		}
		text, err := os.ReadFile(u.name + ".ptx")
		if err != nil {
			t.Fatal(err)
		}
		if packed, err := kernels.PTX(u.name); err != nil || !bytes.Equal(packed, text) {
			t.Errorf("the archive has another %s.ptx, error %v; run go generate ./internal/cuda/kernels", u.name, err)
		}
		if got, err := describe(string(text)); err != nil || len(got) != len(m.Kernels) {
			t.Errorf("%s.ptx has %d kernels, error %v; the index has %d", u.name, len(got), err, len(m.Kernels))
		}
	}
}
