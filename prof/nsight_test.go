package prof_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/nvtx/nvtxtest"
	"github.com/warpline-ml/warpline/model"
	"github.com/warpline-ml/warpline/nn"
	"github.com/warpline-ml/warpline/optim"
	"github.com/warpline-ml/warpline/prof"
	"github.com/warpline-ml/warpline/tensor"
)

// TestNsight: a tool that takes NVTX's ranges sees those of the program and its modules with the operations within, and the walk back,
// each begun and ended once, and nothing once it was stopped; on every engine.
func TestNsight(t *testing.T) {
	for _, engine := range engines {
		tool := nvtxtest.New(t)
		env, err := tensor.Fresh(engine.name)
		if err != nil {
			t.Fatal(err)
		}
		m := model.NewMLP(env, model.Digits, 16)
		opt := optim.NewAdamW(nn.Params(m), optim.AdamWConfig{LR: 1e-3})
		n, err := prof.NewNsight()
		if err != nil || !n.Attached() {
			t.Fatalf("no tool: %v", err)
		}
		env.Profiled(n).Profiled(n)
		step(env, m, opt)
		_, end := env.Range("left open")
		n.Stop()
		end()
		step(env, m, opt)
		told := tool.Told(t)
		if !regexp.MustCompile(`(?s)^start a batch\n.*start 1\nmark linear\nend .*start backward\n(mark [a-z_]+\n)+end .*start left open\nend [0-9a-f]+\n$`).MatchString(told) {
			t.Errorf("%s: told\n%s", engine.name, told)
		}
		if a, b := strings.Count(told, "start "), strings.Count(told, "end "); a != b || strings.Count(told, "a batch") != 1 {
			t.Errorf("%s: %d ranges begin, %d end\n%s", engine.name, a, b, told)
		}
	}
}

// TestNsightWithout a tool observes nothing.
func TestNsightWithout(t *testing.T) {
	t.Setenv("NVTX_INJECTION64_PATH", "")
	n, err := prof.NewNsight()
	if err != nil || n.Attached() {
		t.Fatalf("a tool, or %v", err)
	}
	env, err := tensor.Fresh("cpu")
	if err != nil {
		t.Fatal(err)
	}
	if env.Profiled(n); env.Device().Ranged() {
		t.Error("ranges are observed")
	}
	n.Stop()
}
