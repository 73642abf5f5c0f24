package joblog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
)

const (
	oomLine = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.20 GiB is free. Of the allocated memory 21.00 GiB is allocated by PyTorch, and 300.00 MiB is reserved by PyTorch but unallocated."
	traced  = "Traceback (most recent call last):\n  File \"/home/u/train.py\", line 41, in <module>\n    loss.backward()\ntorch.OutOfMemoryError: " + oomLine + "\n"
)

func steps(from, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "step %d loss 2.31 lr 3e-4 tokens/s 18311\n", from+i)
	}
	return b.String()
}

// TestSurvivedOutOfMemory tells an out-of-memory that ended the program from one that it caught.
func TestSurvivedOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		name, text string
		survived   bool
	}{
		{"it ends with it", steps(1, 30) + traced, false},
		{"lines that were held back stand behind it", steps(1, 30) + traced + steps(31, 20), false},
		{"caught, and told", steps(1, 3) + "WARNING: " + oomLine + "\nskipping batch 3\n" + steps(4, 2), true},
		{"a search for the batch", "Batch size 64 failed, " + oomLine + "\nTrying batch size 32\n" + steps(1, 1), true},
		{"printed, and gone on", steps(1, 3) + "error: " + oomLine + "\n" + steps(4, 3), true},
		{"printed, and one line more", steps(1, 3) + "error: " + oomLine + "\n" + steps(4, 1), false},
		{"traced, and gone on for long", steps(1, 3) + traced + steps(4, 400), true},
		{"traced, gone on, and ended", steps(1, 3) + traced + "retrying\n" + steps(4, 3) + "E0325 20:57:27.620000 2606 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 2710) of binary: python\n", false},
	} {
		r := said(t, "train.log", c.text)
		low := len(r.Findings) == 1 && r.Findings[0].Confidence == finding.Low && strings.HasPrefix(r.Findings[0].Title, "memory ran out, and the program went on")
		if low != c.survived || len(r.Findings) == 0 {
			t.Errorf("%s: %+v", c.name, r.Findings)
		}
	}
}

// TestSurvivedIsNoRoot: what a rank survived is not why the job ended.
func TestSurvivedIsNoRoot(t *testing.T) {
	text := strings.ReplaceAll(steps(1, 2)+"WARNING: "+oomLine+"\nskipping batch\n"+steps(3, 3), "\n", "\n[rank1]: ")
	r := said(t, "job.log", "[rank1]: "+text+"step 9 loss 1\n[rank0]: Traceback (most recent call last):\n[rank0]:   File \"/home/u/train.py\", line 9, in main\n[rank0]: KeyError: 'labels'\n")
	if len(r.Findings) != 2 || !strings.Contains(r.Findings[0].Title, "KeyError") || r.Findings[1].Confidence != finding.Low {
		t.Errorf("%v", titles(r.Findings))
	}
}
