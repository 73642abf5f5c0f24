package lessons

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// L24 records who takes memory, and writes it as PyTorch's viewer and warpline diagnose read it.
func L24(env *tensor.Env, n Numbers, w io.Writer) error {
	// A folder for the files, which is gone afterwards.
	dir, err := os.MkdirTemp("", "lesson")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	// A ring of the latest events, each with the calls that led to it. It may begin at any time.
	h := prof.NewHistory(prof.HistoryConfig{})
	watched := env.Profiled(h)
	x := watched.Ones(n["n"], n["n"])
	x.MatMul(x).Add(x).Sum().Item()
	// The snapshot opens at pytorch.org/memory_viz, and warpline diagnose says who holds what.
	if err := h.WriteSnapshot(filepath.Join(dir, "snapshot.pickle")); err != nil {
		return err
	}
	// The same as a profile for go tool pprof: memory of the device, by line of Go.
	if err := h.WriteHeap(filepath.Join(dir, "heap.pb.gz")); err != nil {
		return err
	}
	// Stop before the program goes on: recording costs time.
	h.Stop()
	for _, name := range []string{"snapshot.pickle", "heap.pb.gz"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		fmt.Fprintln(w, name, "has content:", info.Size() > 0)
	}
	return nil
}
