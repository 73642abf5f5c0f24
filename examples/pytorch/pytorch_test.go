// Package pytorch says how PyTorch's calls are written here, in programs that run: docs/pytorch.md and the answers of
// `warpline torch CALL` are made from them by `go generate ./internal/torchcall`.
//
// A row is a comment that begins with a backtick, and what follows it up to an empty line or the next row:
//
//	// `x.view(3, -1)`, `F.one_hot(labels, 4)` | what to know, if anything
//	use(x.Reshape(3, -1), labels.OneHot(4))
//
// The comment has PyTorch's spellings, and behind a bar the note: how ours differs. Ours is what use is given, or else the
// statement itself, of `if` and `for` the first line. As many of ours as of PyTorch's belong together in order; otherwise
// all of ours are shown for each of PyTorch's. The example that the command prints has also the lines above that make what
// the row names.
//
// The calls that a row answers are read from its spellings: torch. and nn., F., init., optim., lr_scheduler., data., amp.,
// cuda. are the packages (F is torch.nn.functional, init torch.nn.init, nn.utils itself); model. and m. is an nn.Module, opt.
// an Optimizer, sched. a schedule, scaler. a GradScaler; any other variable is a tensor.
//
// The section of the page is what the comment of the test function has in quotes; rows below "Not here: write instead" are
// told as the nearest way. A call that has no row and is not here gets a reason in internal/torchcall/reasons.txt, a
// difference in behaviour a line of internal/torchcall/differences.txt; the prose of the page is internal/torchcall/page.md.
// What is new here takes its name out of reasons.txt: the generator says which. After a rebase that meets others' rows
// generate again.
//
// Where a function makes its values by pattern, what its rows give is compared with PyTorch's: bench/pytorch/calls_reference.py
// evaluates the spellings into testdata/values.json.
package pytorch

import (
	"testing"

	"github.com/warpline-ml/warpline/tensor"
)

// use takes values that only have to exist; an error among them is none that a program could go on with.
func use(values ...any) {
	remember(values)
	for _, v := range values {
		if err, ok := v.(error); ok {
			panic(err)
		}
	}
}

func fresh(t *testing.T, device string) *tensor.Env {
	t.Helper()
	env, err := tensor.Fresh(device)
	if err != nil {
		t.Fatal(err)
	}
	return env
}
