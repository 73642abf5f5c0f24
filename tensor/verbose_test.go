package tensor_test

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/device"
	"github.com/warpline-ml/warpline/tensor"
)

// verbose is a program whose lines TestVerbose reads.
func verbose(t *testing.T, name string) {
	env, err := tensor.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	w := tensor.NewParam(tensor.From(env, []float32{1, 2, 3, 4, 5, 6}, 3, 2))
	env.Ones(5, 3).MatMul(w).ReLU().Sum().Backward()
	fmt.Fprintf(os.Stderr, "the sum of the gradient is %v\n", w.Grad().Sum().Item())
}

// TestVerbose runs a program with WARPLINE_VERBOSE=1 in a process of its own: a line for each operation, forward and
// backward, in the order of the program, with what computed it.
func TestVerbose(t *testing.T) {
	const variable = "WARPLINE_TEST_VERBOSE"
	if name := os.Getenv(variable); name != "" {
		verbose(t, name)
		return
	}
	line := regexp.MustCompile(`^warpline: (\S+) (copy \w+ of \d+ bytes|.+ -> [a-z0-9,\[\] ]+), \d+\.\d us(, backward)?(, .+)?$`)
	for _, name := range []string{"cpu", "sim:0", "null:h200"} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestVerbose$")
		cmd.Env = append(os.Environ(), variable+"="+name, device.VerboseEnv+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
		var ops []string
		for l := range strings.Lines(string(out)) {
			l = strings.TrimSuffix(l, "\n")
			if !strings.HasPrefix(l, "warpline: ") {
				continue
			}
			m := line.FindStringSubmatch(l)
			if m == nil || m[1] != name {
				t.Fatalf("%s: %q", name, l)
			}
			op, _, _ := strings.Cut(m[2], " ")
			if ops = append(ops, op+m[3]); op != "copy" && m[4] == "" {
				t.Errorf("%s: no kernel in %q", name, l)
			}
		}
		text := strings.Join(ops, " ")
		for _, want := range []string{"matmul relu sum", "matmul, backward"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %s", name, want, text)
			}
		}
		if strings.Count(text, "matmul") != 2 {
			t.Errorf("%s: %s", name, text)
		}
	}
}
